/**
 * The configuration: validates all ERRAND_* variables at start and reports all problems at once. The CLI loads it
 * only for a broker: its own part of the environment is in cli/environment.ts.
 */
import { createPrivateKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import * as z from "zod";
import { COMMAND_VARIABLES } from "./cli/work/command-variables.ts";
import { urlProblem } from "./client/connection-errors.ts";
import { isNetwork } from "./doors/http/address-list.ts";
import { parseS3Url, S3_SCHEME, type S3Credentials, S3UrlError } from "./engine/files/s3/place.ts";
import { problemOf } from "./redis/target.ts";
import { readAs } from "./schema/issues.ts";
import { LIMITS } from "./schema/limits.ts";
import { signingKeySchema } from "./schema/signing-key.ts";
import { parseProxy } from "./util/proxy.ts";
import { isServiceLink } from "./util/service-links.ts";
import { Closest } from "./util/similar.ts";
import { EncodingError, utf8 } from "./util/text.ts";

export const EXIT_CONFIG = 78;

/** A whole number, with one message for every mistake. */
const count = (min: number, max: number, more = "") =>
  z
    .string()
    .transform((text) => (text.trim() === "" ? Number.NaN : Number(text)))
    .refine(
      (value) => Number.isInteger(value) && value >= min && value <= max,
      `must be a whole number from ${min} to ${max}${more}`,
    );
const list = z
  .string()
  .transform((text) => text.split(",").map((item) => item.trim()))
  .pipe(z.array(z.string().min(1, "is empty; write entries between commas")));
const redisUrl = z.string().superRefine((url, context) => {
  const message = problemOf(url);
  if (message !== null) context.addIssue({ code: "custom", message });
});

/** The errors contain no part of it: it may have a password. */
const proxyUrl = z.string().transform((value, ctx) => {
  try {
    return parseProxy(value, "ERRAND_EGRESS_PROXY");
  } catch {
    ctx.addIssue({
      code: "custom",
      message: "is not the http or https URL of a proxy: http://proxy.example:3128",
    });
    return z.NEVER;
  }
});

/** The errors contain no part of it: it may have a password. */
const smtpUrl = z.string().refine((text) => {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return (protocol === "smtp:" || protocol === "smtps:") && hostname !== "";
}, "is not the URL of a mail server: smtps://user:password@mail.example:465");

/** A folder, `off`, or a bucket. The errors contain no part of it. */
const filesPlace = z
  .string()
  .trim()
  .min(1)
  .transform((text, ctx) => {
    if (!text.startsWith(S3_SCHEME)) return text;
    try {
      return parseS3Url(text);
    } catch (error) {
      if (!(error instanceof S3UrlError)) throw error;
      ctx.addIssue({ code: "custom", message: error.message });
      return z.NEVER;
    }
  });

/** Part of a key for a bucket. Errors contain no part of it. */
const s3Secret = z
  .string()
  .trim()
  .regex(/^[\x21-\x7e]{1,4096}$/, "must be printable characters without spaces");

/** A path is legal: a proxy may serve the broker below one. */
const brokerUrl = z.string().superRefine((url, context) => {
  const message = urlProblem(url);
  if (message !== undefined) context.addIssue({ code: "custom", message });
});

const trustedProxies = list.superRefine((entries, context) => {
  for (const entry of entries) {
    if (isNetwork(entry)) continue;
    const message = `${JSON.stringify(entry.slice(0, 100))} is no address and no CIDR; give those of your proxies: 127.0.0.1,10.0.0.0/8`;
    context.addIssue({ code: "custom", message });
  }
});

/** The most gateways on one port. */
const MAX_WORKERS = 64;
const workers = z
  .string()
  .transform((text) => {
    if (text === "auto") return Math.min(availableParallelism(), MAX_WORKERS);
    return text.trim() === "" ? Number.NaN : Number(text);
  })
  .refine(
    (value) => Number.isInteger(value) && value >= 1 && value <= MAX_WORKERS,
    `must be a whole number from 1 to ${MAX_WORKERS}, or auto for one for each core`,
  );

/** The minimum that signing libraries accept. */
const MIN_RSA_BITS = 2048;

/** A private JWK, or the path of a file with one. Errors contain no part of it. */
const signingKey = z
  .string()
  .transform((given, ctx) => {
    const stop = (message: string) => {
      ctx.addIssue({ code: "custom", message });
      return z.NEVER;
    };
    let text = given;
    if (!given.trimStart().startsWith("{")) {
      try {
        text = utf8(readFileSync(given), "its file");
      } catch (error) {
        if (error instanceof EncodingError) return stop(`must be UTF-8 text: ${error.message}`);
        return stop("is neither a JWK (a JSON object) nor a readable file");
      }
    }
    try {
      // Without a byte order mark.
      const jwk: unknown = JSON.parse(text.trim());
      return jwk;
    } catch {
      return stop("is not valid JSON; expected a private JWK");
    }
  })
  .pipe(signingKeySchema)
  .refine(
    ({ jwk }) => {
      try {
        const { asymmetricKeyDetails } = createPrivateKey({ key: jwk, format: "jwk" });
        return (asymmetricKeyDetails?.modulusLength ?? MIN_RSA_BITS) >= MIN_RSA_BITS;
      } catch {
        return false;
      }
    },
    { error: `is not a usable private key (RSA: ${MIN_RSA_BITS} bits or more)` },
  );

/** The operator token, in the environment or in its file. */
export const OPERATOR_TOKEN = /^[\x21-\x7e]{16,512}$/;
export const OPERATOR_TOKEN_FORM = "16 to 512 printable characters without spaces";

const schema = z.strictObject({
  ERRAND_HOST: z.string().min(1).default("127.0.0.1"),
  ERRAND_PORT: count(0, 65_535, "; 0 picks a free port").default(4180),
  ERRAND_KEEP_ALIVE_SECONDS: count(1, 86_400).default(65),
  ERRAND_DATA_DIR: z.string().min(1).optional(),
  ERRAND_REDIS_URL: redisUrl.optional(),
  ERRAND_REDIS_WAIT_REPLICAS: count(0, 10).default(0),
  ERRAND_REDIS_FSYNC: z.enum(["always", "everysec"]).default("always"),
  ERRAND_REDIS_BIN: z.string().min(1).optional(),
  ERRAND_OPERATOR_TOKEN: z.string().trim().regex(OPERATOR_TOKEN, `must be ${OPERATOR_TOKEN_FORM}`).optional(),
  ERRAND_SHARDS: count(1, 256).default(1),
  ERRAND_WORKERS: workers.default(1),
  ERRAND_MAX_BODY_BYTES: count(1_024, 67_108_864).default(1_048_576),
  ERRAND_FILES: filesPlace.optional(),
  ERRAND_MAX_FILE_BYTES: count(1, 1_099_511_627_776).default(LIMITS.file_bytes.value),
  ERRAND_PRINCIPAL_FILE_BYTES: count(1, 1_125_899_906_842_624).default(LIMITS.principal_file_bytes.value),
  ERRAND_DELEGATOR_PERCENT: count(1, 100, "; 100 means no limit").default(LIMITS.delegator_percent.value),
  ERRAND_RETENTION_SECONDS: count(1, 315_360_000).default(604_800),
  ERRAND_CALLBACK_ALLOW: list
    .pipe(
      z.array(
        z
          .string()
          .regex(
            /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|[0-9a-f:.]+)(?:\/\d{1,3})?$/i,
            "must be hosts, addresses or CIDRs separated by commas, without scheme and port",
          ),
      ),
    )
    .default([]),
  ERRAND_EGRESS_PROXY: proxyUrl.optional(),
  ERRAND_SMTP_URL: smtpUrl.optional(),
  ERRAND_MAIL_FROM: z
    .string()
    .trim()
    .min(3)
    .max(320)
    .regex(/^[^\r\n]*$/, "must be one line")
    .optional(),
  ERRAND_MAIL_TO: list
    .pipe(
      z.array(
        z
          .string()
          .regex(
            /^(?:\*|(?:[^\s@,]{1,64}@)?[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,20})$/i,
            "must be domains and addresses separated by commas, or * for all: example.com,ann@example.org",
          ),
      ),
    )
    .optional(),
  ERRAND_PUBLIC_URL: brokerUrl.optional(),
  ERRAND_ALLOWED_ORIGINS: list.default([]),
  ERRAND_TRUSTED_PROXIES: trustedProxies.default([]),
  ERRAND_CARD_SIGNING_KEY: signingKey.optional(),
  ERRAND_LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  ERRAND_LOG_FORMAT: z.enum(["text", "json"]).optional(),
  ERRAND_URL: brokerUrl.optional(),
  ERRAND_TOKEN: z.string().min(1).optional(),
  ERRAND_REMOTE_TOKEN: z.string().min(1).optional(),
  ERRAND_COMMAND_TOKEN: z.string().min(1).optional(),
});

/** The key for the bucket of the files, by the names that other programs use. Read only if there is a bucket. */
const keySchema = z.object({
  AWS_ACCESS_KEY_ID: s3Secret,
  AWS_SECRET_ACCESS_KEY: s3Secret,
  AWS_SESSION_TOKEN: s3Secret.optional(),
});

/** `errand work` sets these for its commands, and a command may start a broker. */
const SET_BY_WORK: readonly string[] = COMMAND_VARIABLES;

/** Variable → the option of the command line that set it, for messages. */
export type Flags = Readonly<Record<string, string>>;

export interface Config extends z.output<typeof schema> {
  /** The key for the bucket of the files, if they are in one. */
  readonly s3Credentials?: S3Credentials;
}

export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The configuration has ${problems.length === 1 ? "a problem" : `${problems.length} problems`}:`);
    this.problems = problems;
  }
}

/** The known name that was probably meant: a typo, a beginning, or the name that shares the most words. */
function suggestion(name: string): string {
  const known = Object.keys(schema.shape);
  const closest = new Closest(name);
  for (const one of known) closest.consider(one);
  const [best] = known
    .map((one) => ({ one, ...wordsOf(name, one) }))
    .filter(({ shared }) => shared > 0)
    .sort((a, b) => b.leading - a.leading || b.shared - a.shared || a.others - b.others);
  const meant =
    closest.best ?? known.find((one) => one.startsWith(name) || name.startsWith(one)) ?? best?.one;
  return meant === undefined ? "docs/settings.md lists the known ones" : `did you mean ${meant}?`;
}

/** How many words of two names are the same besides the common first one, also at the beginning, and how many are not. */
function wordsOf(name: string, known: string) {
  const [, ...given] = name.split("_");
  const [, ...words] = known.split("_");
  const shared = words.filter((word) => given.includes(word)).length;
  const differs = words.findIndex((word, at) => word !== given[at]);
  return { leading: differs < 0 ? words.length : differs, shared, others: words.length - shared };
}

/** Whether ERRAND_PORT comes from a service link, and so does not count. */
export const hasPortOfService = ({ ERRAND_PORT: port = "" }: NodeJS.ProcessEnv): boolean =>
  isServiceLink("ERRAND_PORT", port);

/**
 * Throws {@link ConfigError} with all problems. An empty variable counts as unset.
 */
export function readConfig(env: NodeJS.ProcessEnv = process.env, flags: Flags = {}): Config {
  const given = Object.entries(env).filter(
    ([name, value = ""]) =>
      name.startsWith("ERRAND_") &&
      value !== "" &&
      !SET_BY_WORK.includes(name) &&
      !isServiceLink(name, value),
  );
  const result = readAs(schema, Object.fromEntries(given));
  if (result.success) return withKey(result.data, env);
  const nameOf = (name: string) => flags[name] ?? name;
  throw new ConfigError(
    result.error.issues.flatMap((issue) =>
      issue.code === "unrecognized_keys"
        ? issue.keys.map((key) => `${key}: unknown variable; ${suggestion(key)}`)
        : [`${nameOf(issue.path.join("."))}: ${issue.message}`],
    ),
  );
}

function withKey(config: Config, env: NodeJS.ProcessEnv): Config {
  if (typeof config.ERRAND_FILES !== "object") return config;
  const given = Object.entries(env).filter(([, value = ""]) => value !== "");
  const result = readAs(keySchema, Object.fromEntries(given));
  if (!result.success) {
    const why = "for the bucket in ERRAND_FILES";
    throw new ConfigError(
      result.error.issues.map(({ path, message }) => {
        const name = path.join(".");
        return env[name] ? `${name}: ${message}` : `${name}: must be set, ${why}`;
      }),
    );
  }
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = result.data;
  const s3Credentials = {
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
    sessionToken: AWS_SESSION_TOKEN,
  };
  return { ...config, s3Credentials };
}
