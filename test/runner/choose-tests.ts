/** Turns the words after `npm test --` into test files to run and patterns for test names. */
import { globSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'

export interface Chosen {
  readonly files: readonly string[]
  /** Regular expressions; a test runs when its name matches one, or when there are none. */
  readonly patterns: readonly string[]
}

/** A folder of `test/` with its own command. */
export type LongForm = 'fuzz' | 'crash' | 'soak'

/** Every test that a run of one of the kinds may choose. */
export function allTests(): string[] {
  return globSync(ALL).sort()
}

const ALL = ['src/**/*.test.ts', 'test/**/*.test.ts', 'bench/**/*.test.ts']

/** A word that finds test files is a path, a folder, a glob or a long run; any other is a pattern for names. */
export function chooseTests(words: readonly string[], long?: LongForm): Chosen {
  const files = new Set<string>()
  const patterns: string[] = []
  for (const word of words) {
    const found = filesAt(word, long)
    for (const file of found) files.add(file)
    if (found.length > 0) continue
    if (word.includes('/') || word.endsWith('.ts')) throw new Error(`there is no test file at ${word}`)
    if (long && !isNamedIn(word, long)) {
      throw new Error(`npm run ${long} has no run or test called ${word}; runs are ${longRuns(long).join(', ')}`)
    }
    patterns.push(word)
  }
  if (files.size > 0) return { files: [...files].sort(), patterns }
  const everything = globSync(long ? longFile('*', long) : ALL).sort()
  if (everything.length === 0)
    throw new Error(`there are no test files in ${long ? `test/${long}` : 'src, test and bench'}`)
  return { files: everything, patterns }
}

/** The names of the long runs of one form. */
export function longRuns(long: LongForm): string[] {
  return globSync(longFile('*', long))
    .map((file) => basename(file, '.long.ts'))
    .sort()
}

function longFile(name: string, long: LongForm): string {
  return `test/${long}/${name}.long.ts`
}

function filesAt(word: string, long: LongForm | undefined): string[] {
  if (long && longRuns(long).includes(word)) return [longFile(word, long)]
  const isFolder = statSync(word, { throwIfNoEntry: false })?.isDirectory() ?? false
  return globSync(isFolder ? join(word, '**/*.test.ts') : word).filter((path) => /\.(test|long)\.ts$/.test(path))
}

/** Whether a pattern can match a test name in the files; checked first, since a run without tests could take hours. */
function isNamedIn(pattern: string, long: LongForm): boolean {
  return globSync(longFile('*', long)).some((file) => new RegExp(pattern).test(readFileSync(file, 'utf8')))
}
