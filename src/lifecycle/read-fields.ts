/**
 * Reads some packed fields of a record inside a script that only reads: `fields_of(key, names)` returns their values,
 * or false where one is absent.
 */
import { PACKED } from "./fields.ts";

export const FIELDS_OF_LUA = `local function fields_of(key, names)
  local packed = redis.call('HGET', key, '${PACKED}')
  local record, values = packed and cmsgpack.unpack(packed) or {}, {}
  for i, name in ipairs(names) do values[i] = record[name] or false end
  return values
end`;

/** A Lua expression: whether this key holds a record, and not a mark. */
export const isRecordLua = (key: string): string => `redis.call('HEXISTS', ${key}, '${PACKED}') == 1`;
