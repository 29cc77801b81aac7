/** Reads `postern.yml`: a flat map of settings, each with its line number for error messages. */
import { createRequire } from 'node:module'
import { basename, resolve } from 'node:path'
import type { YAMLError } from 'yaml'
import { errorCode } from '../../lib/error-code.ts'
import { readSmallFile } from '../../lib/files/read-small-file.ts'

const DEFAULT_FILE = 'postern.yml'

/** Largest settings file, in bytes. */
const MAX_FILE_BYTES = 1024 * 1024

/** Largest one that a running server reads, in bytes: reading more would block everything that it serves. */
const MAX_SERVING_BYTES = 16 * 1024

const faults: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'it is a folder',
  ETIMEDOUT: 'it is a pipe without a writer',
  EACCES: 'the user that runs Postern is not allowed to read it',
}

/** The text of a setting, and where it was given: `--data-dir`, `POSTERN_DATA_DIR`, `postern.yml line 3`. */
export interface Given {
  readonly text: string
  readonly from: string
}

interface ConfigFile {
  readonly entries: ReadonlyMap<string, Given>
  readonly problems: readonly string[]
}

interface FilePosition {
  readonly named: string | undefined
  readonly cwd: string
  readonly isServing: boolean
}

/** Reads the named file, which must exist, or `postern.yml` in `cwd` if there is one. */
export function readConfigFile({ named, cwd, isServing }: FilePosition): ConfigFile {
  const path = resolve(cwd, named ?? DEFAULT_FILE)
  const maxBytes = isServing ? MAX_SERVING_BYTES : MAX_FILE_BYTES
  try {
    return parseConfig(readSmallFile(path, maxBytes, isServing ? { pipeMs: 0 } : {}), basename(path))
  } catch (error) {
    const code = errorCode(error) ?? String(error)
    if (code === 'ENOENT' && named === undefined) return { entries: new Map(), problems: [] }
    const why = code === 'EFBIG' ? `it has more than ${maxBytes} bytes` : (faults[code] ?? code)
    return { entries: new Map(), problems: [`the settings file ${path} cannot be read: ${why}`] }
  }
}

function parseConfig(text: string, file: string): ConfigFile {
  const { isMap, isScalar, LineCounter, parseDocument } = yaml()
  const lines = new LineCounter()
  const at = (offset: number) => `${file} line ${lines.linePos(offset).line}`
  // The failsafe schema keeps every value as the text in the file: settings have their own parsers.
  const document = parseDocument(text, { schema: 'failsafe', lineCounter: lines, prettyErrors: false, strict: true })
  const entries = new Map<string, Given>()
  const problems = document.errors.map((error) => `${at(error.pos[0])} ${faultOf(error)}`)
  if (problems.length > 0) return { entries, problems }
  // A file with nothing but comments sets nothing.
  if (document.contents === null || (isScalar(document.contents) && document.contents.value === '')) {
    return { entries, problems }
  }
  if (!isMap(document.contents)) {
    return { entries, problems: [`${file} must be a map of settings, for example \`data_dir: /var/lib/postern\``] }
  }
  for (const { key, value } of document.contents.items) {
    if (!isScalar(key)) {
      problems.push(`${file} has a key that is not a plain name`)
      continue
    }
    const name = String(key.value)
    const from = at(key.range?.[0] ?? 0)
    if (!isScalar(value) || typeof value.value !== 'string') {
      problems.push(`\`${name}\` (${from}) must be one plain value, not a list, a map or an alias`)
    } else if (value.value === '') problems.push(`\`${name}\` (${from}) has no value; give it one or remove the line`)
    else entries.set(name, { text: value.value, from })
  }
  return { entries, problems }
}

const require = createRequire(import.meta.url)

/** Loaded on use: a server without a file starts without it. */
function yaml(): typeof import('yaml') {
  return require('yaml') as typeof import('yaml') // that very package
}

/** The parser's message without the text that it quotes, which may be a password. */
function faultOf(error: YAMLError): string {
  if (error.code === 'DUPLICATE_KEY') return 'sets a key for the second time; remove one of the two'
  return `is not valid YAML: ${error.message.replace(/: .*$/s, '')}`
}
