/**
 * A fast client for tests with many requests: persistent connections without fetch. Limit: it reads each answer
 * whole, and returns no headers.
 */
import { Pool } from "undici";
import { onTestFinished } from "vitest";
import type { Answer } from "./broker.ts";

export type ShortAnswer = Pick<Answer, "status" | "body">;
export type SendRequest = (
  token: string,
  method: "GET" | "POST" | "PUT" | "DELETE",
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<ShortAnswer>;

export function keepAliveClient(url: string, connections = 50): SendRequest {
  const pool = new Pool(url, { connections });
  onTestFinished(() => pool.close());
  return async (token, method, path, body, headers) => {
    const response = await pool.request({
      method,
      path,
      headers: {
        accept: "application/json",
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.body.text();
    return { status: response.statusCode, body: text === "" ? null : JSON.parse(text) };
  };
}
