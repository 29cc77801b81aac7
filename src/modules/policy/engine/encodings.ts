/** The functions of expressions for JSON, base64, URLs, queries, digests and random numbers (listed in docs/policy.md). */
import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { CelValue } from '@bufbuild/cel'
import { fromJson, payFor, plainValue } from './cel-values.ts'
import { Fault, type Frame, type Impl, type Impls } from './evaluation-frame.ts'
import { queryParameters, TooMuchToRead } from './http-values.ts'
import { MAX_TEXT } from './operators.ts'
import { withoutStacks } from './without-stacks.ts'

/** The cost of a call, and of each character. */
const CALL_NANOS = 3000
const URL_NANOS = 8000
const DIGEST_NANOS = 5000
const THROWN_NANOS = 6000
const CHARACTER_NANOS = { json: 90, base64: 6, digest: 8, url: 60, query: 60 }

/** Writing a map as a query costs this many times as much as walking through it. */
const ESCAPING = 8

const json = payText(CALL_NANOS, CHARACTER_NANOS.json)
const base64 = payText(CALL_NANOS, CHARACTER_NANOS.base64)
const url = payText(URL_NANOS, CHARACTER_NANOS.url)
const query = payText(CALL_NANOS, CHARACTER_NANOS.query)
const digested = payText(DIGEST_NANOS, CHARACTER_NANOS.digest)

/** Charges for reading an argument and returns it; undefined when it is not a string. */
function payText(base: number, each: number): (frame: Frame, value: unknown) => string | undefined {
  return ({ budget }, value) => {
    if (typeof value !== 'string') return undefined
    budget.charge(base + value.length * each)
    return value
  }
}

/** A function of one string; an exception becomes a `Fault`. */
function ofText(pay: ReturnType<typeof payText>, run: (text: string) => unknown): Impl {
  return (frame, value) => {
    const text = pay(frame, value)
    return text === undefined ? undefined : attempt(frame, () => run(text))
  }
}

/** Turns exceptions into faults. `BudgetSpent` is not among them: callers charge the budget before. */
function attempt({ budget }: Frame, run: () => unknown): unknown {
  try {
    return withoutStacks(run)
  } catch (error) {
    if (error instanceof TooMuchToRead) throw error
    budget.charge(THROWN_NANOS)
    return new Fault(error instanceof Error ? error.message.slice(0, 200) : 'a text cannot be read')
  }
}

function boundText(text: string): string | Fault {
  return text.length > MAX_TEXT ? new Fault('a text has become too long') : text
}

const encodeBase64: Impl = (frame, value) => {
  if (value instanceof Uint8Array) {
    frame.budget.charge(CALL_NANOS + value.length * CHARACTER_NANOS.base64)
    return Buffer.from(value).toString('base64')
  }
  const text = base64(frame, value)
  return text === undefined ? undefined : boundText(Buffer.from(text).toString('base64'))
}

const decodeBase64 = ofText(base64, (text) => Buffer.from(text, 'base64').toString('utf8'))

const encodeJson: Impl = (frame, value) => {
  payFor(frame.library.cel, value, frame.budget)
  // Arguments of functions are values of CEL.
  return attempt(frame, () => boundText(JSON.stringify(plainValue(frame.library, value as CelValue))))
}

const decodeJson: Impl = (frame, value) => {
  const text = json(frame, value)
  return text === undefined ? undefined : attempt(frame, () => fromJson(frame.library.cel, JSON.parse(text)))
}

function digest(algorithm: string): Impl {
  return (frame, value, form = 'hex') => {
    const text = digested(frame, value)
    if (text === undefined) return undefined
    return isForm(form) ? createHash(algorithm).update(text).digest(form) : noForm
  }
}

const crc: Impl = (frame, value, form = 'hex') => {
  const text = digested(frame, value)
  if (text === undefined) return undefined
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(crc32(text))
  return isForm(form) ? bytes.toString(form) : noForm
}

const noForm = new Fault('a digest is written as `hex` or `base64`')

function isForm(form: unknown): form is 'hex' | 'base64' {
  return form === 'hex' || form === 'base64'
}

const digests = Object.fromEntries(
  ['md5', 'sha1', 'sha256', 'sha512'].flatMap((name) => [1, 2].map((count) => [`hash.${name}/${count}`, digest(name)])),
)

export const encodings: Impls = {
  'base64.encode/1': encodeBase64,
  'encodeBase64/1': encodeBase64,
  'base64.decode/1': decodeBase64,
  'decodeBase64/1': decodeBase64,
  'json.encode/1': encodeJson,
  'encodeJson/1': encodeJson,
  'json.decode/1': decodeJson,
  'decodeJson/1': decodeJson,
  'isJson/1': (frame, value, b, c, d) => {
    const read = decodeJson(frame, value, b, c, d)
    return read === undefined ? undefined : !(read instanceof Fault)
  },
  'queryString.decode/1': ofText(query, (text) => new Map(queryParameters(text))),
  'queryString.encode/1': (frame, value) => {
    if (!frame.library.cel.isCelMap(value)) return undefined
    // Every string in it is also escaped, which costs several walks.
    for (let i = 0; i < ESCAPING; i++) payFor(frame.library.cel, value, frame.budget)
    return attempt(frame, () => {
      const fields = plainValue(frame.library, value) as Readonly<Record<string, unknown>> // of a map
      const pairs = Object.entries(fields).flatMap(([name, each]) => [each].flat().map((one) => [name, String(one)]))
      return boundText(new URLSearchParams(pairs as [string, string][]).toString())
    })
  },
  'isQueryString/1': ofText(query, (text) => /^[^\s#?]*$/.test(text) && text.includes('=')),
  'url.escape/1': ofText(url, (text) => boundText(encodeURIComponent(text))),
  'url.unescape/1': ofText(url, (text) => decodeURIComponent(text)),
  'url.parse/1': ofText(url, (text) => {
    const { protocol, host, hostname, port, pathname, search, hash } = new URL(text)
    return {
      scheme: protocol.slice(0, -1),
      authority: host,
      host: hostname,
      port,
      path: pathname,
      query: search.slice(1),
      fragment: hash.slice(1),
    }
  }),
  'isURL/1': ofText(url, (text) => URL.canParse(text)),
  'basic_auth.encode/2': (frame, user, password) => {
    if (typeof user !== 'string' || typeof password !== 'string') return undefined
    return encodeBase64(frame, `${user}:${password}`, undefined, undefined, undefined)
  },
  ...digests,
  'hash.crc32/1': crc,
  'hash.crc32/2': crc,
  'rand.double/0': () => Math.random(),
  'rand.int/2': ({ budget }, least, most) => {
    if (typeof least !== 'bigint' || typeof most !== 'bigint') return undefined
    budget.charge(CALL_NANOS)
    const [low, high] = [Number(least), Number(most)]
    if (low < high && high - low < 2 ** 47 && Number.isSafeInteger(low) && Number.isSafeInteger(high)) {
      return BigInt(randomInt(low, high))
    }
    return new Fault('a random number needs a range that is not empty')
  },
}
