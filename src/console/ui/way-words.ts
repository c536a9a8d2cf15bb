/** The way of an answer in words. */
const WAYS: Readonly<Record<string, string>> = {
  console: "in the console",
  rest: "by the API or CLI",
  mcp: "by MCP",
  a2a: "by A2A",
  "ag-ui": "by AG-UI",
  auto: "approved in advance",
};

/** A later version may know more ways. */
export const wayWords = (via: string): string => WAYS[via] ?? `by ${via}`;
