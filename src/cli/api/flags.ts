/** Flags for the fields of a request body, generated from the schema that the server checks the body with. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Option } from 'commander'
import type { SchemaNode } from '../../lib/shape/check.ts'
import { misuse } from '../command-failure.ts'
import type { Terminal } from '../terminal.ts'
import { withDashes } from './command-names.ts'

/** A schema with its description. */
type FieldNode = SchemaNode & { readonly description?: string }

export interface FieldFlag {
  readonly field: string
  readonly node: FieldNode
  readonly option: Option
}

/** Flags that every command has; a field with such a name can only be given in `--data`. */
const reserved: ReadonlySet<string> = new Set(['data', 'json', 'limit', 'help', 'api-url', 'api-key'])

/** Adds a flag for each field of `schema`, except those in `without`. */
export function fieldFlags(schema: SchemaNode, without: readonly string[] = []): readonly FieldFlag[] {
  return Object.entries(schema.properties ?? {})
    .filter(([field]) => !reserved.has(withDashes(field)) && !without.includes(field))
    .map(([field, node]) => ({ field, node, option: flagOf(field, node) }))
}

/** The body that `--data` and the flags make together; a flag wins over the same field in `--data`. */
export async function bodyOf(
  flags: readonly FieldFlag[],
  options: Readonly<Record<string, unknown>>,
  terminal: Terminal,
): Promise<Record<string, unknown>> {
  const body = await readData(options.data, terminal)
  for (const { field, node, option } of flags) {
    const given = options[option.attributeName()]
    if (given !== undefined) body[field] = fieldValue(node, given, `--${withDashes(field)}`)
  }
  return body
}

/** The value of `--data`: JSON, `@file`, or `-` for standard input. */
export async function readData(data: unknown, terminal: Terminal): Promise<Record<string, unknown>> {
  if (typeof data !== 'string') return {}
  const text =
    data === '-' ? await terminal.readInput() : data.startsWith('@') ? fileText(data.slice(1), terminal) : data
  const value = json(text, '--data')
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw misuse('--data must be a JSON object')
  return { ...value }
}

function flagOf(field: string, node: FieldNode): Option {
  const flag = `--${withDashes(field)}`
  const about = node.description ?? ''
  if (node.enum) return new Option(`${flag} <value>`, `${about} One of ${node.enum.join(', ')}.`.trim())
  switch (node.type ?? 'any') {
    case 'boolean':
      return new Option(`${flag} [true|false]`, about)
    case 'integer':
    case 'number':
      return new Option(`${flag} <number>`, about)
    case 'array':
      return new Option(`${flag} <value>`, `${about} Repeat it, or give a JSON list.`.trim()).argParser(collect)
    case 'object':
      if (node.properties) return new Option(`${flag} <json>`, about)
      return new Option(`${flag} <key=value>`, `${about} Repeat it, or give a JSON object.`.trim()).argParser(collect)
    case 'string':
      return new Option(`${flag} <text>`, about)
    default:
      return new Option(`${flag} <json>`, about)
  }
}

function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value]
}

function fieldValue(node: FieldNode, given: unknown, flag: string): unknown {
  if (Array.isArray(given)) {
    const texts = given.map(String)
    return node.type === 'array' ? listOf(node, texts, flag) : mapOf(node, texts, flag)
  }
  return scalar(node, given === true ? 'true' : String(given), flag)
}

function listOf(node: FieldNode, texts: readonly string[], flag: string): unknown {
  const [only = ''] = texts
  if (texts.length === 1 && only.trimStart().startsWith('[')) return json(only, flag)
  return texts.map((text) => scalar(node.items ?? {}, text, flag))
}

function mapOf(node: FieldNode, texts: readonly string[], flag: string): unknown {
  const [only = ''] = texts
  if (texts.length === 1 && only.trimStart().startsWith('{')) return json(only, flag)
  const value = Object.values(node.patternProperties ?? {})[0] ?? node.additionalProperties
  // No prototype: `__proto__=x` is a key like any other.
  const map: Record<string, unknown> = Object.create(null)
  for (const text of texts) {
    const at = text.indexOf('=')
    if (at < 1) throw misuse(`${flag} must be key=value or a JSON object`)
    map[text.slice(0, at)] = scalar(typeof value === 'object' ? value : { type: 'string' }, text.slice(at + 1), flag)
  }
  return map
}

function scalar(node: FieldNode, text: string, flag: string): unknown {
  // Other invalid values are left to the server, whose errors say more.
  if (node.enum) return node.enum.find((each) => String(each) === text) ?? text
  switch (node.type ?? 'any') {
    case 'string':
      return text
    case 'boolean':
      if (text !== 'true' && text !== 'false') throw misuse(`${flag} must be true or false`)
      return text === 'true'
    case 'integer':
    case 'number':
      if (text.trim() === '' || !Number.isFinite(Number(text))) throw misuse(`${flag} must be a number`)
      return Number(text)
    default:
      return json(text, flag)
  }
}

function json(text: string, flag: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    // The parser quotes its input, which may be a secret: only the position is shown.
    const [where = ''] = /at position \d+/.exec((cause as Error).message) ?? []
    throw misuse(`${flag} is not valid JSON${where && ` ${where}`}`)
  }
}

function fileText(path: string, { cwd }: Terminal): string {
  try {
    return readFileSync(resolve(cwd, path), 'utf8')
  } catch (cause) {
    throw misuse(`--data cannot read ${path}: ${(cause as NodeJS.ErrnoException).code ?? 'unreadable'}`)
  }
}
