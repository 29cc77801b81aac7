/** Parses a YAML file, and knows the line of everything in it. */
import { isMap } from '../../link/options/option-reader.ts'
import { ConfigError } from './config-error.ts'

export interface YamlFile {
  readonly values: Readonly<Record<string, unknown>>
  /** The line of a key or list entry; if it is missing, that of the nearest parent. */
  readonly lineOf: (path: readonly string[]) => number
}

/** `name` is what messages call the file. Throws a `ConfigError`. */
export async function parseYaml(text: string, name: string): Promise<YamlFile> {
  // Loaded on use: an agent without a file does not need it.
  const { isMap: isYamlMap, isScalar, isSeq, isNode, LineCounter, parseDocument, visit } = await import('yaml')
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, strict: true })
  const lineAt = (offset: number): number => lines.linePos(offset).line
  const at = (offset: number): string => `${name} line ${lineAt(offset)}`
  const faults = document.errors.map(({ code, message, pos }) =>
    code === 'DUPLICATE_KEY'
      ? `${at(pos[0])} sets a key for the second time; remove one of the two`
      : // The parser quotes the text that it could not read, which may be a secret; that part is cut off.
        `${at(pos[0])} is not valid YAML: ${message.replace(/: .*$/s, '')}`,
  )
  visit(document, {
    Alias: (_, { range }) => void faults.push(`${at(range?.[0] ?? 0)} has an alias; write the value out`),
  })
  if (faults.length > 0) throw new ConfigError(faults)
  const values: unknown = document.toJS() ?? {}
  if (!isMap(values)) throw new ConfigError([`${name} must be a map of settings, for example \`server: host:7443\``])
  const lineOf = (path: readonly string[]): number => {
    let node: unknown = document.contents
    let offset = 0
    for (const key of path) {
      if (isSeq(node)) {
        const item = node.items[Number(key)]
        if (!isNode(item)) break
        offset = item.range?.[0] ?? offset
        node = item
      } else if (isYamlMap(node)) {
        const pair = node.items.find((each) => isScalar(each.key) && String(each.key.value) === key)
        if (!pair || !isScalar(pair.key)) break
        offset = pair.key.range?.[0] ?? offset
        node = pair.value
      } else break
    }
    return lineAt(offset)
  }
  return { values, lineOf }
}
