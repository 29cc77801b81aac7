/** Turns the words after `npm test --` into test files to run and patterns for test names. */
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'

export interface Chosen {
  readonly files: readonly string[]
  /** Regular expressions; a test runs when its name matches one, or when there are none. */
  readonly patterns: readonly string[]
}

const ALL = ['src/**/*.test.ts', 'test/**/*.test.ts', 'bench/**/*.test.ts']

/** A word that finds test files is a path, a folder or a glob; any other is a pattern for names. */
export function chooseTests(words: readonly string[], long?: 'fuzz' | 'crash' | 'soak'): Chosen {
  const files = new Set<string>()
  const patterns: string[] = []
  for (const word of words) {
    const found = filesAt(word)
    for (const file of found) files.add(file)
    if (found.length > 0) continue
    if (word.includes('/') || word.endsWith('.ts')) throw new Error(`there is no test file at ${word}`)
    patterns.push(word)
  }
  if (files.size > 0) return { files: [...files].sort(), patterns }
  const everything = globSync(long ? `test/${long}/*.long.ts` : ALL).sort()
  if (everything.length === 0)
    throw new Error(`there are no test files in ${long ? `test/${long}` : 'src, test and bench'}`)
  return { files: everything, patterns }
}

function filesAt(word: string): string[] {
  const isFolder = statSync(word, { throwIfNoEntry: false })?.isDirectory() ?? false
  return globSync(isFolder ? join(word, '**/*.test.ts') : word).filter((path) => /\.(test|long)\.ts$/.test(path))
}
