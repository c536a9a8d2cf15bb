/** The files that the principal of a token has uploaded: what they take, and how one is given up. */
import * as z from "zod";
import { type FilesPage, filesPageSchema } from "../schema/file.ts";
import { type ConnectionOptions, Http, route } from "./http.ts";

export interface FilesQuery {
  /** `next_cursor` of the previous page. */
  readonly cursor?: string | undefined;
  /** 1 to 100; default 20. */
  readonly limit?: number | undefined;
}

export class StoredFiles {
  readonly #http: Http;

  constructor(options: ConnectionOptions) {
    this.#http = new Http(options);
  }

  /** Newest first. Throws `files_off` if the broker stores no files. */
  page(query: FilesQuery = {}, signal?: AbortSignal): Promise<FilesPage> {
    const call = { path: "/v1/files", query: { ...query }, signal };
    return this.#http.requestWithRetry(filesPageSchema, call);
  }

  /** Delegations that name the file keep it. Throws `file_not_found`. */
  async delete(id: string): Promise<void> {
    await this.#http.requestWithRetry(z.unknown(), { method: "DELETE", path: route`/v1/files/${id}` });
  }
}
