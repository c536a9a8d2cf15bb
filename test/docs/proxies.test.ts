/** docs/operations.md shows the files of deploy/ that scripts/proxies.mjs runs. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const read = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8");

test.each([
  ["nginx", "nginx.conf"],
  ["caddyfile", "Caddyfile"],
  ["haproxy", "haproxy.cfg"],
])("docs/operations.md shows deploy/'s configuration of %s", (language, file) => {
  const [, block] = read("docs/operations.md").split(`\n\`\`\`${language}\n`);
  const [head = "", ...lines] = read(`deploy/${file}`).split("\n");
  expect(head).toMatch(/^# .*docs\/operations\.md/);
  expect(block?.split("```")[0]).toBe(lines.join("\n"));
});

test.each([
  ["nginx.conf", /^ *proxy_set_header Forwarded "";/m],
  ["Caddyfile", /^ *header_up -Forwarded\b/m],
  ["haproxy.cfg", /^ *http-request del-header Forwarded\b/m],
])("deploy/%s removes a client's own Forwarded", (file, removal) => {
  expect(read(`deploy/${file}`)).toMatch(removal);
});
