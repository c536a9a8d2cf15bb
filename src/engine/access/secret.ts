/** Hashes of tokens, sessions and codes: only they are stored. The secrets are random, so a fast hash is enough. */
import { hash, timingSafeEqual } from "node:crypto";

/** Characters of five bits each: 260 bits. */
export const SECRET_LENGTH = 52;
export const ID_LENGTH = 10;

export const hashOf = (secret: string): string => hash("sha256", secret, "hex");
/** Takes the same time for all hashes. */
export const sameHash = (a: string, b: string): boolean => timingSafeEqual(Buffer.from(a), Buffer.from(b));
