/** Hono's types for Deno, which those of Bull Board's adapter import, name this one of Deno's. */
export {};

declare global {
  namespace Deno {
    type UpgradeWebSocketOptions = object;
  }
}
