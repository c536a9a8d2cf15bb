/** What the commands share that work for an agent: its being there, and their own name. Limit: no work. */
import { hostname } from "node:os";
import { pid } from "node:process";
import { InvalidArgumentError } from "commander";
import type { Admin } from "../client/admin.ts";
import { ErrandApiError } from "../client/errors.ts";

/** Made with its defaults if there is none. */
export async function ensureAgent(admin: Admin, name: string, signal: AbortSignal): Promise<void> {
  try {
    await admin.getAgent(name, { signal });
  } catch (error) {
    if (!(error instanceof ErrandApiError) || error.code !== "agent_unknown") throw error;
    await admin.putAgent(name, {}, { signal });
  }
}

export function defaultWorkerId(): string {
  return `${hostname()}-${pid}`.replace(/[^\x21-\x7e]/g, "_").slice(-128);
}

export function workerId(value: string): string {
  if (/^[\x21-\x7e]{1,128}$/.test(value)) return value;
  throw new InvalidArgumentError("It takes 1 to 128 printable ASCII characters without spaces.");
}
