/** Tries rows of the tables of access: each as every principal. */
import { expect } from "vitest";
import { TOOLS } from "../../../src/doors/mcp/tools/tools.ts";
import { A2A, a2aAsk, a2aStage, type Form } from "./matrix-a2a.ts";
import { connectMcp, MCP, type MCP_ERAS, mcpAsk, mcpStage } from "./matrix-mcp.ts";
import {
  type Ask,
  COLUMNS,
  type Column,
  openWorld,
  type Row,
  STRANGERS,
  type Stage,
  type Subject,
  send,
  shapeOf,
  toRow,
  unknownOf,
  type World,
  wordOf,
} from "./world.ts";

type AskOf = (subject: Subject, column: Column) => Ask;

interface Trial {
  readonly row: Row;
  readonly stage: Stage;
  readonly ask: AskOf;
  /** The row changes nothing, so one subject serves all columns. */
  readonly reads: boolean;
}

/** Tries a row and compares the result of each column. Refusals come first, on one subject, which must not change. */
export async function tryRow(
  world: World,
  name: string,
  { row: expected, stage, ask, reads }: Trial,
): Promise<void> {
  const { url, tokens, prepare, kept } = world;
  const isList = Object.values(expected).some((word) => word === "sees" || word === "blind");
  const got = new Map<Column, string>();
  const one = async (column: Column, subject: Subject) => {
    const words = new Set<string>();
    for (const token of tokens[column]) {
      const received = await send(url, token, ask(subject, column));
      words.add(wordOf(received, subject, isList));
      if (!STRANGERS.includes(column) || isList || expected[column] === "ok") continue;
      const unknown = unknownOf(subject);
      const absent = await send(url, token, ask(unknown, column));
      expect(shapeOf(received, subject), `${column}: a foreign id is answered as an unknown one`).toEqual(
        shapeOf(absent, unknown),
      );
    }
    got.set(column, [...words].join("|"));
  };
  const acts = COLUMNS.filter((column) => expected[column] === "ok");
  const shared = await prepare(stage);
  const before = await kept(shared);
  for (const column of COLUMNS.filter((name) => !acts.includes(name))) await one(column, shared);
  expect(await kept(shared), "a refusal changes nothing").toEqual(before);
  for (const column of acts) await one(column, reads ? shared : await prepare(stage));
  const found = toRow(COLUMNS.map((column) => got.get(column) ?? "?"));
  expect.soft({ [name]: found }).toEqual({ [name]: expected });
}

/** Every operation of A2A, in one form. */
export async function tryA2a(form: Form): Promise<void> {
  const world = await openWorld();
  for (const [name, row] of Object.entries(A2A)) {
    const ask = a2aAsk(form, name);
    const reads = !/^(?:Send|Cancel|Create|Delete)/.test(name);
    if (ask) await tryRow(world, name, { row, stage: a2aStage(name), ask, reads });
  }
}

/** Every tool of MCP, as a client of one era. */
export async function tryMcp(era: (typeof MCP_ERAS)[number]): Promise<void> {
  const world = await openWorld();
  const sessions = era === "modern" ? null : await connectMcp(world);
  for (const [name, row] of Object.entries(MCP)) {
    if (name.startsWith("tasks/") && era === "legacy") continue;
    const reads = name === "tasks/get" || TOOLS.some((tool) => tool.name === name && tool.readOnly);
    const ask = (subject: Subject, column: Column) => mcpAsk(name, subject, column, sessions);
    await tryRow(world, name, { row, stage: mcpStage(name), ask, reads });
  }
}
