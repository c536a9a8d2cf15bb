/** Reads docker-compose.yml as `docker compose` would without any variable set. It supports the keys of that file. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { ROOT } from "./registry.ts";

const healthSchema = z.strictObject({
  test: z.array(z.string()).min(2),
  interval: z.string(),
  timeout: z.string(),
  retries: z.number(),
  start_period: z.string(),
});
const common = {
  image: z.string(),
  restart: z.literal("unless-stopped"),
  stop_grace_period: z.string(),
  volumes: z.array(z.string()),
  security_opt: z.array(z.string()),
};
const composeSchema = z.strictObject({
  services: z.strictObject({
    redis: z.strictObject({ ...common, command: z.array(z.string()), healthcheck: healthSchema }),
    errand: z.strictObject({
      ...common,
      build: z.literal("."),
      depends_on: z.strictObject({ redis: z.strictObject({ condition: z.literal("service_healthy") }) }),
      environment: z.record(z.string(), z.string()),
      ports: z.array(z.string()),
      init: z.literal(true),
      read_only: z.literal(true),
      cap_drop: z.array(z.string()),
      logging: z.strictObject({ driver: z.string(), options: z.record(z.string(), z.string()) }),
    }),
  }),
  volumes: z.record(z.string(), z.null()),
});

export function readCompose() {
  // Variables are replaced after the YAML is parsed: a value stays a string, whatever it looks like.
  const text = JSON.stringify(parse(readFileSync(join(ROOT, "docker-compose.yml"), "utf8")));
  const resolved = text.replaceAll(/\$\{\w+:-([^}]*)\}/g, "$1");
  if (resolved.includes("${")) throw new Error("a variable without a default");
  return composeSchema.parse(JSON.parse(resolved));
}

/** `redis-server --name value …` as lines of a configuration file. */
export function redisConfigOf(command: readonly string[]): Record<string, string> {
  const [program, ...flags] = command;
  if (program !== "redis-server" || flags.length % 2 !== 0) throw new Error(`not understood: ${command}`);
  return Object.fromEntries(
    flags.flatMap((flag, i) => (i % 2 === 0 ? [[flag.replace(/^--/, ""), flags[i + 1] ?? ""]] : [])),
  );
}
