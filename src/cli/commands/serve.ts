/** `errand serve`: runs a broker. config.ts validates the options. */
import type { Command } from "commander";
import { type Cli, examples } from "../context.ts";
import type { ServeOptions } from "../host.ts";

export function addServe(program: Command, { host, end }: Cli): void {
  program
    .command("serve")
    .description("run a broker until Ctrl-C; ERRAND_* variables configure it")
    .option("--host <host>", "the address to listen on (ERRAND_HOST, default 127.0.0.1)")
    .option("--port <port>", "the port to listen on, 0 for a free one (ERRAND_PORT, default 4180)")
    .option(
      "--data-dir <folder>",
      "the directory for data, operator token and lock (ERRAND_DATA_DIR, default .errand)",
    )
    .option("--redis-url <url>", "use this Redis (ERRAND_REDIS_URL, default: an embedded one)")
    .option(
      "--workers <n>",
      "gateways on the port, each a process; auto: one for each core (ERRAND_WORKERS, default 1)",
    )
    .option("--log <format>", "text or json (ERRAND_LOG_FORMAT, default: text on a terminal, else json)")
    .addHelpText("after", examples("errand serve", "errand serve --port 0 --data-dir /var/lib/errand"))
    .action(async (options: ServeOptions) => end(await host.serve(options)));
}
