/** Notes below a list: how to answer the questions in it. */
import type { Delegation } from "../../schema/delegation.ts";
import type { CliHost } from "../host.ts";
import { note } from "./output.ts";
import { howToAnswer } from "./questions.ts";

export async function noteHowToAnswer(host: CliHost, delegations: readonly Delegation[]): Promise<void> {
  for (const one of delegations) {
    if (one.interrupt) await note(host, `to answer, run ${howToAnswer(one)}.`);
  }
}
