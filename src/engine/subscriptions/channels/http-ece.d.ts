/** The part of `http_ece` that Web Push needs; the package has no types. */
declare module "http_ece" {
  import type { ECDH } from "node:crypto";

  export function encrypt(
    plain: Buffer,
    params: {
      readonly version: "aes128gcm";
      /** The key of this message. */
      readonly privateKey: ECDH;
      /** The browser's public key, in base64url. */
      readonly dh: string;
      /** The browser's secret, in base64url. */
      readonly authSecret: string;
    },
  ): Buffer;
}
