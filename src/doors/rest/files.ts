/**
 * Files of any size, beside messages: uploads that continue after a break, as the tus protocol 1.0 has them, files in one
 * request, and downloads. A part names a file by its URL.
 */
import * as z from "zod";
import { continueUpload, uploadFile } from "../../engine/files/continue-upload.ts";
import { findFileOf, findOwnFile } from "../../engine/files/download.ts";
import { forgetFile, listFiles } from "../../engine/files/own-files.ts";
import { beginUpload, dropUpload, readUpload } from "../../engine/files/upload.ts";
import {
  fileIdSchema,
  fileSchema,
  filesPageSchema,
  sha256Schema,
  type Upload,
  uploadIdSchema,
  uploadSchema,
} from "../../schema/file.ts";
import { delegationIdSchema, listQuery } from "../../schema/values.ts";
import type { AuthenticatedRequest } from "../http/authenticated-request.ts";
import { publicPath } from "../http/links.ts";
import { type Route, route } from "../http/route.ts";
import { json, noContent } from "../http/text-response.ts";
import { sendFile } from "./send-file.ts";
import { announcedLength, contentLength, lengthOf, offsetOf, requireContent } from "./upload-headers.ts";

const uploadPath = z.strictObject({
  /** The upload. */
  upload: uploadIdSchema,
});
const ownFilePath = z.strictObject({
  /** The file. */
  file: fileIdSchema,
});
const filePath = z.strictObject({
  /** The delegation. */
  id: delegationIdSchema,
  /** The file. */
  file: fileIdSchema,
});
const filesQuery = z.strictObject(listQuery(z.string().regex(/^\d{1,16}$/, "not a cursor")));
const uploadQuery = z.strictObject({
  /** The SHA-256 that the content must have. Any other content is refused, and nothing is kept. */
  sha256: sha256Schema.optional(),
});

/** The headers of the tus protocol. */
const tus = ({ offset, length, file }: Upload): Record<string, string> => ({
  "tus-resumable": "1.0.0",
  "upload-offset": String(offset),
  ...(length === null ? { "upload-defer-length": "1" } : { "upload-length": String(length) }),
  ...(file && { "errand-file": file.url }),
});

/** Adds the body of the request to the upload. */
async function receive(
  request: AuthenticatedRequest,
  id: string,
  offset: number,
  length?: number,
): Promise<Upload> {
  requireContent(request);
  return request.withBody((bytes) =>
    continueUpload(request.broker, request.principal, id, { offset, length, bytes }),
  );
}

export const fileRoutes: readonly Route[] = [
  route({
    id: "uploadFile",
    method: "POST",
    path: "/v1/files",
    summary: "Upload a file in one request",
    description:
      "The body is the content, as it is. The `url` of the answer, in a part of a message or an artifact, names the file. A request must arrive within 30 seconds: for a large file over a slow line, begin an upload.",
    query: uploadQuery,
    notes: { receivesBytes: true },
    responses: { 201: fileSchema },
    async handle(request, { query: { sha256 } }) {
      requireContent(request);
      const begin = { length: contentLength(request), sha256 };
      const file = await request.withBody((bytes) =>
        uploadFile(request.broker, request.principal, begin, bytes),
      );
      return json(201, file, { location: publicPath(request.broker.publicUrl(), `/v1/files/${file.id}`) });
    },
  }),
  route({
    id: "listFiles",
    method: "GET",
    path: "/v1/files",
    summary: "List the files that you uploaded",
    description: "Newest first, with the bytes that all of them and your uploads take.",
    query: filesQuery,
    responses: { 200: filesPageSchema },
    async handle(request, { query }) {
      return json(200, await listFiles(request.broker, request.principal, query));
    },
  }),
  route({
    id: "downloadFile",
    method: "GET",
    path: "/v1/files/{file}",
    summary: "Download a file that you uploaded",
    description: "Its bytes, or a range of them. Others download it by a delegation that names it.",
    params: ownFilePath,
    notes: { sendsBytes: true, requestHeaders: ["Range"] },
    responses: { 200: null },
    async handle(request, { params: { file } }) {
      return sendFile(request, file, await findOwnFile(request.broker, request.principal, file));
    },
  }),
  route({
    id: "deleteFile",
    method: "DELETE",
    path: "/v1/files/{file}",
    summary: "Delete a file that you uploaded",
    description:
      "At once if no delegation names it, otherwise together with the last one that does. Until then it counts for you.",
    params: ownFilePath,
    responses: { 204: null },
    async handle(request, { params: { file } }) {
      await forgetFile(request.broker, request.principal, file);
      return noContent();
    },
  }),
  route({
    id: "downloadDelegationFile",
    method: "GET",
    path: "/v1/delegations/{id}/files/{file}",
    summary: "Download a file of a delegation",
    description:
      "The bytes, or a range of them, of a file that a message or an artifact of the delegation names, for everybody who may read the delegation.",
    params: filePath,
    notes: { sendsBytes: true, requestHeaders: ["Range"] },
    responses: { 200: null },
    async handle(request, { params: { id, file } }) {
      return sendFile(request, file, await findFileOf(request.broker, request.principal, id, file));
    },
  }),
  route({
    id: "beginUpload",
    method: "POST",
    path: "/v1/uploads",
    summary: "Begin an upload that may be continued",
    description:
      "The header `Location` of the answer names the upload, for the pieces. `Upload-Length` says how many bytes there will be; `Upload-Defer-Length: 1` says that this is not known yet. The request has no body. The same request with the same `Idempotency-Key` begins no second upload: it answers with the first one, as far as it is. The upload ends as a file with its last byte.",
    query: uploadQuery,
    notes: {
      requestHeaders: ["Upload-Length", "Upload-Defer-Length", "Idempotency-Key"],
      responseHeaders: ["Location", "Idempotency-Replayed"],
    },
    responses: { 201: uploadSchema },
    async handle(request, { query: { sha256 } }) {
      const { broker, principal } = request;
      const length = announcedLength(request);
      const { idempotencyKey } = request;
      const { isRepeat, ...begun } = await beginUpload(broker, principal, { length, sha256, idempotencyKey });
      const upload =
        length === 0 && begun.file === null
          ? await continueUpload(broker, principal, begun.id, { offset: 0, bytes: nothing() })
          : begun;
      const location = publicPath(broker.publicUrl(), `/v1/uploads/${upload.id}`);
      const repeated = isRepeat && { "idempotency-replayed": "true" };
      return json(201, upload, { ...tus(upload), location, ...repeated });
    },
  }),
  route({
    id: "getUpload",
    method: "GET",
    path: "/v1/uploads/{upload}",
    summary: "See how far an upload is",
    description: "Continue at `offset` after a break. Once all bytes have arrived, `file` is the file.",
    params: uploadPath,
    responses: { 200: uploadSchema },
    async handle(request, { params: { upload: id } }) {
      const upload = await readUpload(request.broker, request.principal, id);
      return json(200, upload, tus(upload));
    },
  }),
  route({
    id: "continueUpload",
    method: "PATCH",
    path: "/v1/uploads/{upload}",
    summary: "Send the next bytes of an upload",
    description:
      "The body is the bytes from `Upload-Offset` on, as many as you like. What arrived of a request that broke off is kept: ask for the offset and continue. With the last byte, `file` of the answer is the file.",
    params: uploadPath,
    notes: { receivesBytes: true, requestHeaders: ["Upload-Offset", "Upload-Length"] },
    responses: { 200: uploadSchema },
    async handle(request, { params: { upload: id } }) {
      const upload = await receive(request, id, offsetOf(request), lengthOf(request));
      return json(200, upload, tus(upload));
    },
  }),
  route({
    id: "deleteUpload",
    method: "DELETE",
    path: "/v1/uploads/{upload}",
    summary: "Give an upload up",
    description: "What has arrived is deleted. A complete one is a file, which has a DELETE of its own.",
    params: uploadPath,
    responses: { 204: null },
    async handle(request, { params: { upload: id } }) {
      await dropUpload(request.broker, request.principal, id);
      return noContent({ "tus-resumable": "1.0.0" });
    },
  }),
];

async function* nothing(): AsyncGenerator<Uint8Array> {}
