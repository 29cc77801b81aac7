/** Reads YAML from outside as strictly as JSON: one document of plain values, bounded in size, depth and aliases. */
import { createRequire } from 'node:module'
import type { CST, LineCounter, Node } from 'yaml'

type Yaml = typeof import('yaml')

/** YAML that is refused. The message continues a sentence that began with the field's path. */
export class BadYaml extends Error {}

/** Far more than policies have; hostile YAML of this size takes half a second to parse. */
const MAX_BYTES = 64 * 1024
/** The same depth that request bodies may have. */
const MAX_DEPTH = 32
/** The most values in total, counted each time that an alias repeats them; 64 KiB hold fewer without aliases. */
const MAX_VALUES = 50_000

/** The value of a YAML 1.2 text (core schema); throws `BadYaml`. */
export function readYaml(text: string): unknown {
  if (Buffer.byteLength(text) > MAX_BYTES) {
    throw new BadYaml(`is not JSON, and too long for YAML, of which at most ${MAX_BYTES} bytes are read`)
  }
  const { Parser, Composer, LineCounter } = yaml()
  const lines = new LineCounter()
  const tokens = [...new Parser(lines.addNewLine).parse(text)]
  // Checked before composing, which recurses.
  for (const token of tokens) if (isDeep(token, 0)) throw tooDeep()
  // Duplicate keys are found below: the library's check takes quadratic time.
  const strict = {
    schema: 'core',
    merge: false,
    resolveKnownTags: false,
    uniqueKeys: false,
    prettyErrors: false,
  } as const
  const [document, second] = [...new Composer({ ...strict, logLevel: 'silent' }).compose(tokens, true, text.length)]
  if (!document || second) throw new BadYaml('holds several YAML documents; send one')
  const [fault] = document.errors
  if (fault) throw new BadYaml(`is not valid YAML at ${place(lines, fault.pos[0])}: ${withoutText(fault.message)}`)
  const [odd] = document.warnings
  if (odd) throw new BadYaml(`has an unknown tag or directive at ${place(lines, odd.pos[0])}; write plain values`)
  return new Reading(lines).value(document.contents, 0)
}

/** The YAML library; loaded on first use, since only policies written in YAML need it. */
function yaml(): Yaml {
  return require('yaml') as Yaml
}

const require = createRequire(import.meta.url)

function isDeep(token: CST.Token | null | undefined, depth: number): boolean {
  if (!token) return false
  if (token.type === 'document') return isDeep(token.value, depth)
  if (!('items' in token)) return false
  return depth >= MAX_DEPTH || token.items.some(({ key, value }) => isDeep(key, depth + 1) || isDeep(value, depth + 1))
}

/** Turns nodes into values, and follows aliases. */
class Reading {
  readonly #yaml = yaml()
  readonly #lines: LineCounter
  readonly #anchors = new Map<string, Node>()
  #count = 0

  constructor(lines: LineCounter) {
    this.#lines = lines
  }

  value(node: unknown, depth: number): unknown {
    if (++this.#count > MAX_VALUES) throw new BadYaml(`has over ${MAX_VALUES} values with its aliases followed`)
    const { isAlias, isNode, isMap, isSeq, isScalar } = this.#yaml
    if (!isNode(node)) return null
    if (isAlias(node)) {
      const target = this.#anchors.get(node.source)
      if (!target) throw this.#refuse(node, 'an alias has no anchor before it')
      return this.value(target, depth)
    }
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node)
    if (isScalar(node)) return this.#scalar(node.value, node)
    if (depth >= MAX_DEPTH) throw tooDeep()
    if (isSeq(node)) return node.items.map((item) => this.value(item, depth + 1))
    if (!isMap(node)) throw this.#refuse(node, 'is not a plain value')
    const map: Record<string, unknown> = {}
    for (const pair of node.items) map[this.#key(pair.key, map, node)] = this.value(pair.value, depth + 1)
    return map
  }

  #key(node: unknown, map: object, parent: Node): string {
    if (!this.#yaml.isScalar(node)) throw this.#refuse(parent, 'has a key that is not plain text')
    const key = String(this.#scalar(node.value, node))
    if (key === '__proto__') throw this.#refuse(node, 'the key `__proto__` is not allowed')
    if (Object.hasOwn(map, key)) throw this.#refuse(node, 'a key stands twice in one map')
    return key
  }

  #scalar(value: unknown, node: Node): string | number | boolean | null {
    if (value === null || typeof value === 'boolean') return value
    if (typeof value === 'number' && Number.isFinite(value)) return value
    if (typeof value !== 'string') throw this.#refuse(node, 'a value is no text, number, true, false or null')
    if (value.includes('\0')) throw this.#refuse(node, 'a string contains a NUL character')
    if (!value.isWellFormed()) throw this.#refuse(node, 'a string is not well-formed Unicode')
    return value
  }

  #refuse({ range }: Node, what: string): BadYaml {
    return new BadYaml(`cannot be taken: at ${place(this.#lines, range?.[0] ?? 0)}, ${what}`)
  }
}

function tooDeep(): BadYaml {
  return new BadYaml(`is nested deeper than ${MAX_DEPTH} levels`)
}

function place(lines: LineCounter, offset: number): string {
  const { line, col } = lines.linePos(offset)
  return `line ${line}, column ${col}`
}

/** Removes what the library quotes from the text, which may be a secret. */
function withoutText(message: string): string {
  return message.replace(/: .*$/s, '').slice(0, 120)
}
