/** Which files were changed since a commit, and which tests these changes can reach. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { type ImportGraph, reachedFrom } from './import-graph.ts'

/** Files on which every test depends. */
const ALL_DEPEND = /^(package(-lock)?\.json|tsconfig[\w.]*\.json|\.npmrc|test\/run\.ts|test\/runner\/.*)$/

/** Files in which the code of no test can look. */
const NONE_DEPEND = /^(biome\.json|\.oxlintrc\.json|\.gitignore|\.ci\/.*|test\/weights\.json)$/

/** Tests that read all sources. */
const READS_ALL = 'test/support/sources.ts'

/** Since `revision`, or since the branch left its upstream; what is not committed counts too. */
export function changedFiles(revision?: string): string[] {
  const since = revision ?? branchPoint()
  const changed = git('diff', '--name-only', since)
  return [...new Set([...changed, ...git('ls-files', '--others', '--exclude-standard')])].sort()
}

/** The tests that reach one of the files; `reason` says why all of them do. */
export function testsReaching(
  changed: readonly string[],
  tests: readonly string[],
  graph: ImportGraph,
  textOf: (file: string) => string = (file) => readFileSync(file, 'utf8'),
): { readonly files: readonly string[]; readonly reason?: string } {
  const reason = changed.find((file) => ALL_DEPEND.test(file))
  if (reason !== undefined) return { files: tests, reason }
  const code = [...graph.keys()].filter((file) => file.endsWith('.ts'))
  const reached = new Set(changed.filter((file) => graph.has(file)))
  // Any other file is read by its name or with its folder: a page of the docs, a file of `deploy/`.
  for (const file of changed.filter((each) => !graph.has(each) && !NONE_DEPEND.test(each))) {
    const [name, ending] = [basename(file), extname(file)]
    const names = ending === '' ? [name] : [name, join(dirname(file), `*${ending}`)]
    for (const each of code) if (names.some((name) => textOf(each).includes(name))) reached.add(each)
  }
  const files = tests.filter((test) => {
    const all = reachedFrom(test, graph, () => true)
    return all.has(READS_ALL) || [...reached].some((file) => all.has(file))
  })
  return { files: changed.length === 0 ? [] : files }
}

function branchPoint(): string {
  try {
    return git('merge-base', 'HEAD', '@{upstream}')[0] ?? 'HEAD'
  } catch {
    // The branch has no upstream.
    return 'HEAD'
  }
}

function git(...args: string[]): string[] {
  const output = execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  return output.split('\n').filter(Boolean)
}
