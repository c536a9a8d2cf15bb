/** `errand files`: lists the files that the principal has uploaded, and gives them up. */
import type { Command } from "commander";
import { StoredFiles } from "../../client/stored-files.ts";
import { type FilesPage, fileIdSchema, type StoredFile } from "../../schema/file.ts";
import { type Cli, connect, connectToRead, examples, type GlobalOptions } from "../context.ts";
import { valid, wholeBetween } from "../input/arguments.ts";
import { noteMore, pagesUpTo } from "../show/list-pages.ts";
import { addTableOptions, ageColumn, type Column, ListTable, type TableOptions } from "../show/list-table.ts";
import { note, print, printJson } from "../show/output.ts";
import { sizeText } from "../show/size.ts";
import { localTime } from "../show/time.ts";
import { addOrphans } from "./orphans.ts";

interface ListOptions extends TableOptions {
  readonly limit: number;
  readonly cursor?: string;
}

const ABOUT = `
'errand delegate --attach' uploads files, and so do agents with what they return. A delegation that names a file keeps it,
however old it is; a file that none names is deleted a day after its upload. The bytes of both count for the principal
that uploaded them. Ids are long: --wide and -o name print them whole.`;

const COLUMNS: readonly Column<StoredFile>[] = [
  { name: "id", cell: ({ id }) => id, identifier: ({ id }) => id },
  { name: "size", cell: ({ size }) => sizeText(size) },
  ageColumn("age", ({ created_at }) => created_at),
  { name: "until", cell: ({ expires_at }) => untilText(expires_at) },
];

/** After that instant, only delegations keep the file. */
const untilText = (instant: string): string =>
  Date.parse(instant) <= Date.now() ? "no delegation names it" : localTime(instant);

export function addFiles(program: Command, cli: Cli): void {
  const files = program
    .command("files")
    .description("list the files that you uploaded, or delete them")
    .addHelpText("after", examples("errand files list", "errand files delete fil_…"));
  addListFiles(files, cli);
  addDeleteFiles(files, cli);
  addOrphans(files, cli);
}

function addListFiles(files: Command, { host }: Cli): void {
  const list = files
    .command("list")
    .description("list the files that you uploaded, newest first")
    .option("--limit <n>", "maximum number of files (default 100)", wholeBetween(1, 10_000), 100)
    .option("--cursor <cursor>", "continue a list that ended with this cursor");
  addTableOptions(list, COLUMNS)
    .addHelpText("after", ABOUT)
    .addHelpText("after", examples("errand files list", "errand files list --json | jq -r .id"))
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<ListOptions>();
      const stored = new StoredFiles(await connectToRead(host, options));
      const table = new ListTable(host, COLUMNS, options);
      const read = {
        wanted: options.limit,
        cursor: options.cursor,
        countOf: (page: FilesPage) => page.files.length,
      };
      let last: FilesPage | undefined;
      for await (const page of pagesUpTo({ ...read, read: (query) => stored.page(query) })) {
        last = page;
        if (options.json) for (const one of page.files) await printJson(host, one);
        else if (page.files.length > 0) await table.print(page.files);
      }
      if (last === undefined) return;
      if (!options.json && last.files.length === 0 && options.cursor === undefined)
        await note(host, "no files yet.");
      if (!options.json) await note(host, `${sizeText(last.bytes)} of ${sizeText(last.max_bytes)} are used.`);
      await noteMore(host, last.next_cursor, options.json);
    });
}

function addDeleteFiles(files: Command, { host }: Cli): void {
  files
    .command("delete")
    .description("delete files that you uploaded: at once, or with the last delegation that names them")
    .argument("<ids...>", "ids of files, from 'errand files list'", fileIds)
    .addHelpText(
      "after",
      examples("errand files delete fil_…", "errand files list -o name | xargs errand files delete"),
    )
    .action(async (ids: readonly string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const stored = new StoredFiles(await connect(host, options));
      for (const id of ids) {
        await stored.delete(id);
        await (options.json ? printJson(host, { deleted: id }) : print(host, `deleted ${id}`));
      }
    });
}

const fileIds = (value: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  valid(fileIdSchema)(value),
];
