/**
 * Finds the broker's URL and the token: from flags, then the environment, then the local broker's files.
 * The operator token is sent only to the broker that wrote it.
 */
import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { getuid } from "node:process";
import * as z from "zod";
import { checkUrl } from "../client/connection-errors.ts";
import { type ErrandApiError, localError } from "../client/errors.ts";
import { cleanToken } from "../client/token.ts";
import { EncodingError, utf8 } from "../util/text.ts";
import type { CliHost } from "./host.ts";

export interface Target {
  readonly url: string;
  readonly token: string;
}

export interface Local {
  readonly folder: string;
  readonly url?: string | undefined;
  readonly operatorToken?: string | undefined;
  /** Why the file of the operator token cannot be used. */
  readonly tokenProblem?: ErrandApiError | undefined;
}

const DATA_DIR = ".errand";
export const START =
  "Start a broker with 'npm start' in Errand's folder or 'errand serve', set ERRAND_URL and ERRAND_TOKEN, or set ERRAND_DATA_DIR to the data directory of a running broker.";
/** Where a token comes from, for somebody who has none. */
export const GET_TOKEN =
  "Set ERRAND_TOKEN or pass --token. The broker's operator creates a token with 'errand invite <name>'.";
/** For a command of `errand work`, which has none of its worker's secrets. */
export const COMMAND_TOKEN =
  "A command of 'errand work' gets no token of its worker. Give it one of its agent: start 'errand work' with ERRAND_COMMAND_TOKEN.";
const gatewaySchema = z.object({ url: z.url({ protocol: /^https?$/ }) });

interface Flags {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
}

/** The URL and the token that were found, each with its source: an option, a variable or a file. */
export interface Found {
  readonly url?: string | undefined;
  readonly urlFrom?: string | undefined;
  readonly token?: string | undefined;
  readonly tokenFrom?: string | undefined;
  readonly local?: Local | undefined;
}

export async function discover(env: CliHost["env"], flags: Flags): Promise<Target> {
  const { url, token, local } = await locate(env, flags);
  if (url === undefined) throw noBroker(env, local);
  checkUrl(url);
  if (token !== undefined) return { url, token };
  const givenUrl = flags.url ?? env.url;
  throw localError({
    code: "no_token",
    category: "AUTH",
    detail: givenUrl
      ? `no token for ${givenUrl}`
      : `${join(local?.folder ?? env.dataDir, "operator-token")} cannot be read`,
    recovery: env.isCommand
      ? COMMAND_TOKEN
      : local?.url
        ? `Correct the URL, because the local operator token is only for ${local.url}, or: ${GET_TOKEN}`
        : GET_TOKEN,
  });
}

/** Throws only if the data directory belongs to another user or names a broker of another machine, or if a token is damaged. */
export async function locate(env: CliHost["env"], flags: Flags): Promise<Found> {
  const givenUrl = (flags.url ?? env.url)?.trim();
  const tokenFrom = flags.token !== undefined ? "--token" : "ERRAND_TOKEN";
  const givenToken = cleanToken(flags.token ?? env.token, tokenFrom);
  const token = givenToken !== undefined && { token: givenToken, tokenFrom };
  const url = givenUrl !== undefined && {
    url: givenUrl,
    urlFrom: flags.url !== undefined ? "--url" : "ERRAND_URL",
  };
  if (url && token) return { ...url, ...token };
  const local = await findLocal(env.dataDir);
  const found: Found = {
    ...(local?.url !== undefined && { url: local.url, urlFrom: join(local.folder, "gateway.json") }),
    ...url,
    local,
  };
  if (token) return { ...found, ...token };
  if (local === undefined || found.url === undefined || !isSame(found.url, local.url)) return found;
  if (local.tokenProblem !== undefined) throw local.tokenProblem;
  if (local.operatorToken === undefined) return found;
  const path = join(local.folder, "operator-token");
  return { ...found, token: cleanToken(local.operatorToken, path), tokenFrom: path };
}

/** Finds the data directory and what is in it for clients. */
async function findLocal(dataDir: string): Promise<Local | undefined> {
  const folder = await findDataDir(dataDir);
  if (folder === undefined) return undefined;
  const local = await readLocal(folder, isSearchedFor(dataDir));
  // In a folder from elsewhere, such as a clone, the file could name any server, which would get work and tokens.
  if (local.url !== undefined && !isOnThisMachine(local.url)) throw elsewhere(folder, local.url);
  return local;
}

/** The data directory, if it exists. The default name is searched for in parent directories, too, as git does. */
export async function findDataDir(dataDir: string): Promise<string | undefined> {
  const isDefault = isSearchedFor(dataDir);
  for (let folder = resolve(dataDir); ; folder = join(dirname(dirname(folder)), DATA_DIR)) {
    const owner = await ownerOf(folder);
    if (owner !== undefined) {
      // In a shared parent directory another user could plant one to receive our work.
      if (isDefault && getuid && owner !== getuid()) throw foreign(folder);
      return folder;
    }
    if (!isDefault || dirname(folder) === dirname(dirname(folder))) return undefined;
  }
}

const isSearchedFor = (dataDir: string): boolean => basename(dataDir) === DATA_DIR;

async function ownerOf(folder: string): Promise<number | undefined> {
  try {
    const found = await stat(folder);
    return found.isDirectory() ? found.uid : undefined;
  } catch {
    return undefined;
  }
}

async function readLocal(folder: string, mustBeOwn: boolean): Promise<Local> {
  const [gateway, token] = await Promise.all([
    readBytes(join(folder, "gateway.json"), mustBeOwn),
    readBytes(join(folder, "operator-token"), mustBeOwn),
  ]);
  const url = urlIn(gateway && new TextDecoder().decode(gateway));
  if (token === undefined) return { folder, url };
  try {
    return { folder, url, operatorToken: utf8(token, join(folder, "operator-token")).trim() || undefined };
  } catch (error) {
    if (!(error instanceof EncodingError)) throw error;
    const { message: detail, remedy: recovery } = error;
    return {
      folder,
      url,
      tokenProblem: localError({ code: "invalid_token", category: "AUTH", detail, recovery }),
    };
  }
}

async function readBytes(path: string, mustBeOwn: boolean): Promise<Buffer | undefined> {
  // Another user's FIFO must not stop us.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    // The open file is checked, because the folder may have been replaced since its owner was.
    if (mustBeOwn && getuid && (await file.stat()).uid !== getuid()) throw foreign(path);
    return await file.readFile().catch(() => undefined);
  } finally {
    await file.close();
  }
}

function urlIn(gateway: string | undefined): string | undefined {
  if (gateway === undefined) return undefined;
  try {
    return gatewaySchema.safeParse(JSON.parse(gateway)).data?.url;
  } catch {
    return undefined;
  }
}

/** Compares scheme, host and port as text: `localhost` may be a different server than 127.0.0.1. */
function isSame(url: string, localUrl: string | undefined): boolean {
  if (localUrl === undefined || !URL.canParse(url)) return false;
  return new URL(url).origin === new URL(localUrl).origin;
}

function noBroker({ dataDir, isCommand }: CliHost["env"], local: Local | undefined) {
  const detail = local
    ? `no broker is running on ${local.folder}`
    : `no broker found: ${dataDir} does not exist${basename(dataDir) === DATA_DIR ? ", here or in a parent directory" : ""}`;
  return localError({
    code: "no_broker",
    category: "TRANSPORT",
    detail,
    recovery: isCommand ? COMMAND_TOKEN : START,
    retryable: true,
  });
}

function elsewhere(folder: string, url: string) {
  return localError({
    code: "foreign_broker",
    category: "CONFIG",
    detail: `${join(folder, "gateway.json")} names ${new URL(url).origin}, which is no address of this machine, and is not trusted`,
    recovery: "If that broker is yours, set ERRAND_URL and ERRAND_TOKEN.",
  });
}

function foreign(folder: string) {
  return localError({
    code: "foreign_data_dir",
    category: "CONFIG",
    detail: `${folder} belongs to another user and is not trusted`,
    recovery: "Set ERRAND_URL and ERRAND_TOKEN.",
  });
}

/**
 * Whether a URL leads to this machine. Only an address of this machine and localhost do. The request looks up every other
 * name, also that of this machine, and the answer could be the address of another machine.
 */
function isOnThisMachine(url: string): boolean {
  const name = new URL(url).hostname.replace(/^\[|\]$/g, "");
  if (isIP(name) === 0) return name === "localhost";
  const own = Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));
  return /^127\.|^::1$/.test(name) || own.includes(name);
}
