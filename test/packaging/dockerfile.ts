/**
 * Reads a Dockerfile as far as this project's needs it: stages, instructions, continued lines. It throws on anything
 * unknown (ARG, heredocs, variables), so that no test passes because something was overlooked.
 */
import { z } from "zod";

const KNOWN = ["FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "CMD"];

export interface Instruction {
  readonly name: string;
  readonly text: string;
}

export interface Stage {
  readonly image: string;
  readonly alias: string | undefined;
  readonly steps: readonly Instruction[];
}

export function parseDockerfile(text: string): Stage[] {
  const stages: { image: string; alias: string | undefined; steps: Instruction[] }[] = [];
  const lines = text
    .replaceAll(/^\s*#.*\n/gm, "")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n");
  for (const line of lines.filter((one) => one.trim() !== "")) {
    const [, name = "", rest = ""] = /^([A-Z]+) (.+)$/.exec(line) ?? [];
    if (!KNOWN.includes(name)) throw new Error(`not understood: ${line}`);
    if (name === "FROM") {
      const [image = "", , alias] = rest.split(" ");
      stages.push({ image, alias, steps: [] });
    } else stages.at(-1)?.steps.push({ name, text: rest });
  }
  return stages;
}

/** The arguments of all instructions with this name. */
export const all = (stage: Stage, name: string): string[] =>
  stage.steps.filter((step) => step.name === name).map(({ text }) => text);

export interface Copy {
  readonly from: string | undefined;
  readonly sources: readonly string[];
  readonly target: string;
}

export function copies(stage: Stage): Copy[] {
  return all(stage, "COPY").map((text) => {
    const words = text.split(" ");
    const from = words[0]?.startsWith("--from=") ? words.shift()?.slice("--from=".length) : undefined;
    return { from, sources: words.slice(0, -1), target: words.at(-1) ?? "" };
  });
}

/** The exec form of a CMD or HEALTHCHECK; throws on the shell form, which would not pass signals on. */
export function execForm(text: string): string[] {
  return z
    .array(z.string())
    .min(1)
    .parse(JSON.parse(text.slice(text.indexOf("["))));
}

export const environment = (stage: Stage): Record<string, string> =>
  Object.fromEntries(all(stage, "ENV").flatMap((text) => text.split(" ").map((pair) => pair.split("=", 2))));
