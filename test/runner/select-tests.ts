/** Selects what a run is to run: all tests of its kind, those that changes can reach, or those that the words name. */
import { changedFiles, testsReaching } from './changed-files.ts'
import { allTests, type Chosen, chooseTests } from './choose-tests.ts'
import type { RunFlags } from './flags.ts'
import { readImports, readReferences } from './import-graph.ts'
import { isOfKind } from './test-kinds.ts'

export interface Selected extends Chosen {
  /** Whether these are all tests of a kind. */
  readonly isWhole: boolean
  /** Why these, where it is not plain. */
  readonly note?: string
}

export function selectTests({ kind, long, words, isChanged }: Omit<RunFlags, 'isHelp' | 'isWeighed'>): Selected {
  if (long) return { ...chooseTests(words, long), isWhole: false }
  const imports = readImports()
  const ofKind = (files: readonly string[]) => files.filter((file) => isOfKind(kind, file, imports))
  if (isChanged) {
    const changed = changedFiles(words[0])
    const { files, reason } = testsReaching(changed, ofKind(allTests()), readReferences())
    const why = reason === undefined ? '' : `, among them ${reason}, on which every test depends`
    return { files, patterns: [], isWhole: false, note: `${changed.length} files are changed${why}` }
  }
  if (words.length === 0) return { files: ofKind(allTests()), patterns: [], isWhole: true }
  const { files, patterns } = chooseTests(words)
  // Files that somebody names are run whatever they are.
  return { files: kind === 'unit' ? ofKind(files) : files, patterns, isWhole: false }
}
