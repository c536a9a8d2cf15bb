/** Drives the bounds of files to their limit: what one token makes a broker hold on the disk and in Redis. */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { LIMITS, type LimitName } from "../../src/schema/limits.ts";
import { type Driver, type Ground, settle, times } from "./driver.ts";

const MIB = 1024 * 1024;
const QUOTA = 512 * MIB;
const AT_ONCE = 16;
const CALLERS = 50;
const NAMING = 20;

const storedSchema = z.object({ url: z.string() });
const errorSchema = z.object({ code: z.string() });

async function send(
  { gateway }: Ground,
  method: string,
  path: string,
  token: string,
  body?: Uint8Array<ArrayBuffer>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const url = new URL(path, gateway.url);
  const init = { method, headers: { ...headers, authorization: `Bearer ${token}` }, ...(body && { body }) };
  return fetch(url, init);
}

/** The URL of the file. */
async function upload(ground: Ground, content: Uint8Array<ArrayBuffer>): Promise<string> {
  const answer = await send(ground, "POST", "/v1/files", ground.caller, content);
  if (answer.status !== 201) throw new Error(`an upload was refused: ${await answer.text()}`);
  return storedSchema.parse(await answer.json()).url;
}

/** The limit that refuses one more. */
async function refused(answer: Response): Promise<void> {
  const { code } = errorSchema.parse(await answer.json());
  if (code !== "quota_exceeded") throw new Error(`the bound was not reached: ${code}`);
}

/** Runs `count` of them, a few at once. */
async function each(count: number, run: (n: number) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < count; at += AT_ONCE)
    await Promise.all(times(Math.min(AT_ONCE, count - at), (n) => run(at + n)));
}

const tiny = (n: number): Uint8Array<ArrayBuffer> => new TextEncoder().encode(`${n}`);
const head = (method: string, path: string, token: string, more = ""): string =>
  `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n${more}\r\n`;
const warm = async (ground: Ground): Promise<void> => {
  await upload(ground, tiny(0));
};

/** As many files as a delegation may name. */
async function thousand(ground: Ground): Promise<string[]> {
  const urls: string[] = [];
  await each(LIMITS.delegation_files.value, async (n) => {
    urls[n] = await upload(ground, tiny(n));
  });
  return urls;
}

const naming = ({ worker: { agent } }: Ground, urls: readonly string[]) => ({
  target: agent,
  message: { parts: [{ text: "x" }, ...urls.map((url) => ({ url, filename: "a.txt" }))] },
});

export const FILE_DRIVERS: Partial<Record<LimitName, Driver>> = {
  file_bytes: {
    what: "5 files of 100 MiB, up and then down at once",
    files: {},
    async drive(ground) {
      const urls = await Promise.all(times(5, () => upload(ground, randomBytes(LIMITS.file_bytes.value))));
      await Promise.all(
        urls.map(async (url) => {
          for await (const _ of (await send(ground, "GET", url, ground.caller)).body ?? []);
        }),
      );
    },
  },
  principal_file_bytes: {
    what: "files of 16 MiB up to a limit of 512 MiB for each principal, instead of 4 GiB",
    files: { principalBytes: QUOTA },
    async drive(ground) {
      for (let bytes = 0; bytes < QUOTA; bytes += 16 * MIB) await upload(ground, randomBytes(16 * MIB));
      await refused(await send(ground, "POST", "/v1/files", ground.caller, randomBytes(MIB)));
    },
  },
  principal_files: {
    what: "10 000 files of a few bytes",
    files: { prepare: warm, each: { of: "file", count: LIMITS.principal_files.value - 1 } },
    async drive(ground) {
      await each(LIMITS.principal_files.value - 1, (n) => upload(ground, tiny(n + 1)));
      await refused(await send(ground, "POST", "/v1/files", ground.caller, tiny(-1)));
    },
  },
  delegation_files: {
    what: "20 delegations that name 1 000 files each",
    files: {
      async prepare(ground) {
        const [first = ""] = await thousand(ground);
        await ground.gateway.call("POST", "/v1/delegations", naming(ground, [first]), ground.caller);
      },
      each: { of: "name, with its part of the message", count: NAMING * LIMITS.delegation_files.value },
    },
    async drive(ground) {
      const urls = await thousand(ground);
      for (let n = 0; n < NAMING; n += 1)
        await ground.gateway.call("POST", "/v1/delegations", naming(ground, urls), ground.caller);
    },
  },
  uploads: {
    what: "50 callers with 100 uploads each, begun with a key, of which a byte has arrived",
    files: { prepare: warm, each: { of: "upload", count: CALLERS * LIMITS.uploads.value } },
    async drive(ground) {
      let keys = 0;
      for (let n = 0; n < CALLERS; n += 1) {
        const token = await ground.gateway.token(`caller:uploads-${n}`);
        const begin = () =>
          send(ground, "POST", "/v1/uploads", token, undefined, {
            "upload-length": "100",
            "idempotency-key": `${keys++}`,
          });
        await each(LIMITS.uploads.value, async () => {
          const { id } = z.object({ id: z.string() }).parse(await (await begin()).json());
          await send(ground, "PATCH", `/v1/uploads/${id}`, token, tiny(1), { "upload-offset": "0" });
        });
        await refused(await begin());
      }
    },
  },
  transfers: {
    what: "25 uploads of 100 MiB that stop after 4 MiB, and 25 downloads of 100 MiB that are not read",
    files: {},
    async drive(ground) {
      const { caller, send } = ground;
      const url = await upload(ground, randomBytes(LIMITS.file_bytes.value));
      for (let n = 0; n < LIMITS.transfers.value / 2; n += 1) {
        const more = `content-length: ${LIMITS.file_bytes.value}\r\n`;
        send(head("POST", "/v1/files", caller, more)).write(randomBytes(4 * MIB));
        send(head("GET", new URL(url).pathname, caller));
      }
      await settle(ground.gateway);
    },
  },
};
