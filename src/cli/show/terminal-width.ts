/** How wide the terminal is. */
import type { CliHost } from "../host.ts";

const WITHOUT_TERMINAL = 80;

/** 80 columns without a terminal, or if its width is unknown. */
export function terminalWidth(host: CliHost, stream: "stdout" | "stderr"): number {
  const { [stream]: out } = host;
  const columns = host.isTty[stream] && "columns" in out ? Number(out.columns) : 0;
  return columns > 0 ? columns : WITHOUT_TERMINAL;
}

/** Where text continues on the next line: nowhere without a terminal. */
export const wrapWidth = (host: CliHost): number =>
  host.isTty.stdout ? terminalWidth(host, "stdout") : Number.POSITIVE_INFINITY;
