/**
 * A session of 2025-11-25 is not stored. Its id has a checksum and the client's name, `mcp_<random>_<check>_<name>`, so
 * every gateway knows every session. It is no secret: each request has its token, and a session grants nothing.
 */
import { hash as digest } from "node:crypto";

/** As much of a client's name as a lease's worker_id may have. */
const NAME_CHARS = 128;

export interface Session {
  readonly id: string;
  readonly clientName: string;
}

/** Binds an id to its broker and principal: elsewhere, and for others, it is unknown. */
const checkOf = (owner: readonly [broker: string, principal: string], random: string, name: string): string =>
  digest("sha256", [...owner, random, name].join("\n"), "hex").slice(0, 16);

export function newSession(owner: readonly [string, string], random: string, clientName: string): Session {
  const name = Buffer.from(clientName.slice(0, NAME_CHARS)).toString("base64url");
  return { id: `mcp_${random}_${checkOf(owner, random, name)}_${name}`, clientName };
}

/** Bounded, because a client chooses the id that it sends. 128 characters of a name are at most 512 of base64url. */
const ID = /^mcp_([0-9a-z]{1,64})_([0-9a-f]{16})_([\w-]{0,512})$/;

/** Undefined if the owner has no such session. */
export function sessionOf(owner: readonly [string, string], id: string): Session | undefined {
  const [, random = "", check, name = ""] = ID.exec(id) ?? [];
  if (check !== checkOf(owner, random, name)) return undefined;
  return { id, clientName: Buffer.from(name, "base64url").toString() };
}
