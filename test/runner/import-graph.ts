/** Which files reach which: by imports, and by the paths of the programs and threads that they start. */
import { existsSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { findImports } from '../support/imports.ts'
import { readSources } from '../support/sources.ts'

/** For each source file, the files and packages that it uses when it runs. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>

/** The launcher chooses what it imports. */
const LAUNCHER = 'bin/postern.js'

const PATH = /(?<!\bfrom |\bimport )['"]([\w./-]+\.(?:ts|js))['"]/g
const THREAD = /\bthreadFile\('([\w-]+)'/g

/** Of imports alone. */
export function readImports(sources: ReadonlyMap<string, string> = allSources()): ImportGraph {
  return new Map([...sources].map(([file, text]) => [file, importsOf(file, text)]))
}

/** Of imports, and of the paths of programs and threads that a file starts. */
export function readReferences(sources: ReadonlyMap<string, string> = allSources()): ImportGraph {
  const used = [...sources].map(([file, text]): [string, string[]] => {
    const started = [...text.matchAll(PATH)].flatMap(([, path = '']) => [besides(file, path), path])
    const threads = [...text.matchAll(THREAD)].map(([, name]) => besides(file, `${name}.ts`))
    const known = [...started, ...threads].filter((path) => sources.has(path) || path === LAUNCHER)
    return [file, [...new Set([...importsOf(file, text), ...known])]]
  })
  return new Map([[LAUNCHER, ['src/main.ts']], ...used])
}

function importsOf(file: string, text: string): string[] {
  const imported = findImports(text).imports.filter(({ kind }) => kind !== 'type')
  return imported.map(({ specifier }) => (specifier.startsWith('.') ? besides(file, specifier) : specifier))
}

function besides(file: string, path: string): string {
  return normalize(join(dirname(file), path))
}

/** All that `file` reaches, itself included, where the search goes on from those that `passes` lets through. */
export function reachedFrom(file: string, graph: ImportGraph, passes: (file: string) => boolean): Set<string> {
  const reached = new Set([file])
  for (const each of reached) {
    if (passes(each)) for (const used of graph.get(each) ?? []) reached.add(used)
  }
  return reached
}

function allSources(): Map<string, string> {
  return new Map(
    ['src', 'test', 'bench', 'build'].filter((each) => existsSync(each)).flatMap((each) => [...readSources(each)]),
  )
}
