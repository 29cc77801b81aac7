/** Documents that would block a thread that checks them, and are refused by price; each is for a PUT on a route. */
import type { Json } from './api-client.ts'

/** Costly to compile, but accepted. */
export const dearPatterns = Array.from({ length: 40 }, (_, i) => `(?i)x[\\pL]${i}$`)

/** A template with a thousand variables. */
const template = '${1}'.repeat(1000)

/** The last part of the path, the body, and the refusal. */
export const dearDocuments: Readonly<
  Record<string, readonly [path: string, body: Json, code: string, message: RegExp]>
> = {
  'classes of hundreds of ranges each': [
    'user_agent_filter',
    { allow: Array.from({ length: 100 }, () => `[${'\\pL'.repeat(340)}]`) },
    'ERR_BAD_REGEX',
    /^`allow\[0\]` is too costly/,
  ],
  'ranges of a hundred thousand characters whose case is folded': [
    'user_agent_filter',
    { deny: [`(?i)[${'B-\\x{1e942}'.repeat(80)}]`] },
    'ERR_BAD_REGEX',
    /^`deny\[0\]` is too costly/,
  ],
  'a hundred thousand variables in headers': [
    'request_headers',
    { add: Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`x${i}`, template])) },
    'ERR_INVALID_VALUE',
    /^`add\["x1"\]` brings the values to over 1000/,
  ],
  'a quarter of a million variables in a policy': [
    'policy',
    { inbound: [{ actions: [{ type: 'log', config: { metadata: { a: '${1}'.repeat(250_000) } } }] }] },
    'ERR_BAD_POLICY',
    /metadata\["a"\]` makes the expressions and patterns of this policy too large in total/,
  ],
  '64 KiB of YAML that is nothing but brackets': [
    'traffic_policy',
    { value: '['.repeat(64 * 1024) },
    'ERR_BAD_POLICY',
    /nested deeper than 32 levels/,
  ],
}
