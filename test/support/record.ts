/** Reads and writes the fields of a record in Redis itself, packed ones as well; a value is text. */

import { z } from "zod";
import { FIELDS, type NumberField, PACKED, PACKED_NAMES } from "../../src/lifecycle/fields.ts";
import type { Redis } from "../../src/redis/connect.ts";

const READ = `local flat, fields = redis.call('HGETALL', KEYS[1]), {}
local function add(name, value) fields[#fields + 1], fields[#fields + 2] = name, value end
for i = 1, #flat, 2 do
  if flat[i] ~= '${PACKED}' then add(flat[i], flat[i + 1]) end
  for name, value in pairs(flat[i] == '${PACKED}' and cmsgpack.unpack(flat[i + 1]) or {}) do add(name, value) end
end
return fields`;

const WRITE = `local record = cmsgpack.unpack(redis.call('HGET', KEYS[1], '${PACKED}') or cmsgpack.pack({}))
for i = 1, #ARGV, 3 do
  local name, type, value = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if type == 'number' then record[name] = tonumber(value)
  elseif type == 'text' then record[name] = value ~= '' and value or nil
  else redis.call('HSET', KEYS[1], name, value) end
end
redis.call('HSET', KEYS[1], '${PACKED}', cmsgpack.pack(record))`;

const flatSchema = z.array(z.union([z.string(), z.number()]));

/** Every field of the record; an absent one is undefined. */
export async function fieldsOf(redis: Redis, key: string): Promise<Record<string, string | undefined>> {
  const flat = flatSchema.parse(await redis.eval(READ, 1, key)).map(String);
  const names = flat.filter((_, at) => at % 2 === 0);
  return Object.fromEntries(names.map((name, at) => [name, flat[2 * at + 1]]));
}

export const fieldOf = async (redis: Redis, key: string, name: string): Promise<string | undefined> =>
  (await fieldsOf(redis, key))[name];

const isNumber = (name: string): name is NumberField =>
  Object.entries(FIELDS).some(([one, { type }]) => one === name && (type === "number" || type === "instant"));
function typeOf(name: string): "number" | "text" | "own" {
  if (!PACKED_NAMES.some((one) => one === name)) return "own";
  return isNumber(name) ? "number" : "text";
}

/** Changes fields of a record; an empty text removes a packed one. */
export async function setFields(
  redis: Redis,
  key: string,
  fields: Readonly<Record<string, string | number>>,
): Promise<void> {
  const args = Object.entries(fields).flatMap(([name, value]) => [name, typeOf(name), value]);
  await redis.eval(WRITE, 1, key, ...args);
}
