/** Keeps the house rules that no linter knows: how files begin, how long they grow, what is pinned. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { unusedExports } from './support/exports.ts'
import { codeLines, countHouse } from './support/house-counts.ts'
import { readSources } from './support/sources.ts'

/** A longer file says in its header why it is one thing. */
const LINES_UNARGUED = 400

const TEST_LINES_AT_MOST = 500

// With a letter in brackets, so that the rule does not find itself.
const leftover = /\b(T[O]DO|F[I]XME)\b/
// `t.skip('why')` stays: a test may find at run time that a program it needs is not there.
const singled = /\b(test|it|describe|suite)\.(only|skip|todo)\(|\b(only|skip|todo): true\b/
const drawer = /(^|\/)(utils?|helpers?|common|services|core)(\/|\.tsx?$)/
const exact = /^(npm:[\w-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/

interface Rule {
  readonly holds: (text: string, file: string) => boolean
  readonly folders: readonly string[]
  /** Made-up files, to see that the rule can fail. */
  readonly broken: readonly { readonly text?: string; readonly file?: string }[]
}

const everywhere = ['src', 'test', 'bench', 'build']

const rules: Record<string, Rule> = {
  'a file begins with a /** sentence */': {
    // A test says what it is about in its names.
    holds: (text, file) => file.endsWith('.test.ts') || /^\/\*\*(\n \*)? [^\s*]/.test(text),
    folders: ['src'],
    broken: [{ text: "import 'a'\n/** Late. */" }, { text: '// A plain comment.' }, { text: '/** */' }, { text: '' }],
  },
  [`a file of more than ${LINES_UNARGUED} lines says in its header why it is one thing`]: {
    holds: (text, file) =>
      file.endsWith('.test.ts') || linesOf(text) <= LINES_UNARGUED || / One thing: \w/.test(headerOf(text)),
    folders: ['src'],
    broken: [{ text: `/** All. */\n${'a\n'.repeat(LINES_UNARGUED)} // One thing: no.` }],
  },
  [`a test in the sources has at most ${TEST_LINES_AT_MOST} lines`]: {
    holds: (text, file) => !file.endsWith('.test.ts') || linesOf(text) <= TEST_LINES_AT_MOST,
    folders: ['src'],
    broken: [{ file: 'src/lib/a.test.ts', text: 'a\n'.repeat(TEST_LINES_AT_MOST + 1) }],
  },
  'nothing is left for later': {
    holds: (text) => !leftover.test(text),
    folders: everywhere,
    broken: [{ text: ['// TO', 'DO: more'].join('') }, { text: ['/* FIX', 'ME */'].join('') }],
  },
  'no test is singled out or passed over': {
    holds: (text) => !singled.test(text),
    folders: everywhere,
    broken: ['only', 'skip'].flatMap((word) => [
      { text: `test.${word}('a', () => {})` },
      { text: `describe('a', { ${word}: ${true} }, b)` },
    ]),
  },
  'nothing is put in a drawer such as utils': {
    holds: (_, file) => !drawer.test(file),
    folders: everywhere,
    broken: [{ file: 'src/utils/a.ts' }, { file: 'src/lib/helpers.ts' }, { file: 'test/common/a.ts' }],
  },
}

function linesOf(text: string): number {
  return text.trimEnd().split('\n').length
}

function headerOf(text: string): string {
  return /^\/\*\*[\s\S]*?\*\//.exec(text)?.[0] ?? ''
}

describe('in the sources', () => {
  for (const [name, { holds, folders }] of Object.entries(rules)) {
    test(name, () => {
      const sources = folders.flatMap((folder) => [...readSources(folder)])
      assert.ok(sources.length > 0)
      assert.deepEqual(
        sources.filter(([file, text]) => !holds(text, file)).map(([file]) => file),
        [],
      )
    })
  }
})

describe('a broken file is found by', () => {
  for (const [name, { holds, broken }] of Object.entries(rules)) {
    test(name, () => {
      for (const { text = '', file = 'src/lib/a.ts' } of broken) assert.equal(holds(text, file), false, text || file)
    })
  }
})

/** Exported classes, interfaces and types that more than one file declares. Tests and what only they use are left out. */
function sharedNames(sources: Iterable<readonly [file: string, text: string]>): string[] {
  const homes = new Map<string, string[]>()
  for (const [file, text] of sources) {
    if (/\/testing\/|\.test\.tsx?$/.test(file)) continue
    for (const [, name = ''] of text.matchAll(/^export (?:abstract )?(?:class|interface|type) (\w+)/gm)) {
      homes.set(name, [...(homes.get(name) ?? []), file])
    }
  }
  return [...homes].filter(([, files]) => files.length > 1).map(([name, files]) => `${name}: ${files.join(', ')}`)
}

describe('one name a thing', () => {
  test('no two files export a class or type of one name', () => {
    const sources = readSources('src')
    assert.ok(sources.size > 5)
    assert.deepEqual(sharedNames(sources), [])
  })

  test('two of one name are found, whatever they are', () => {
    const [a, b] = ['src/lib/a.ts', 'src/model/b.ts']
    for (const [one, other] of [
      ['export class Port {}', 'export interface Port {}'],
      ['export type Port = 1', 'export abstract class Port {}'],
    ] as const) {
      assert.deepEqual(
        sharedNames(
          new Map([
            [a, one],
            [b, `/** Ports. */\n${other}`],
          ]),
        ),
        [`Port: ${a}, ${b}`],
      )
    }
    const apart = new Map([
      [a, 'export class Port {}'],
      [b, 'interface Port {}\nexport type Ports = Port[]'],
      ['src/lib/testing/a.ts', 'export class Port {}'],
    ])
    assert.deepEqual(sharedNames(apart), [])
  })
})

describe('the budgets', () => {
  const { note: _, ...budgets } = JSON.parse(readFileSync('test/house.budget.json', 'utf8')) as {
    note: string
  } & Record<string, number>
  const counts: Readonly<Record<string, number>> = { ...countHouse() }
  test('are for what is counted', () => assert.deepEqual(Object.keys(budgets), Object.keys(counts)))
  for (const [name, most] of Object.entries(budgets)) {
    test(`${name}: at most ${most}`, () => assert.ok(Number(counts[name]) <= most, `${name}: ${counts[name]}`))
  }

  test('count lines of code, not blank ones or comments', () => {
    const text = "/** A. */\nimport 'a'\n\n  // Why.\n  /* so\n   * on */\nconst a = '/*' // b\n"
    assert.equal(codeLines(text), 2)
  })

  test('find an export that nothing else uses', () => {
    const sources = new Map([['src/lib/a.ts', 'export const used = 1\nexport async function unused() {}']])
    const users = new Map([...sources, ['src/lib/b.ts', "import { used } from './a.ts'"], ['src/c.ts', 'unused()']])
    assert.deepEqual(unusedExports(sources, users), [{ file: 'src/lib/a.ts', name: 'unused' }])
  })
})

describe('the dependencies', () => {
  test('are pinned to one version each', () => {
    const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Record<
      string,
      Record<string, string> | undefined
    >
    const kinds = ['dependencies', 'devDependencies', 'optionalDependencies']
    const all = kinds.flatMap((kind) => Object.entries(manifest[kind] ?? {}))
    assert.ok(all.length > 0)
    assert.deepEqual(
      all.filter(([, version]) => !exact.test(version)),
      [],
    )
    for (const loose of ['^1.2.3', '~1.2.3', '1.x', '*', 'latest', '>=1.2.3']) assert.doesNotMatch(loose, exact)
  })

  test('are locked without naming the registry they came from', () => {
    assert.doesNotMatch(readFileSync('package-lock.json', 'utf8'), /"resolved":/)
  })

  // Not left to npm's `strict-allow-scripts`: that refuses `npx postern` in a clone, which has a script of its own.
  test('somebody has looked at every dependency that runs a script when it is installed', () => {
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
      packages: Record<string, { hasInstallScript?: boolean }>
    }
    const { allowScripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { allowScripts: object }
    const running = Object.entries(packages).filter(([path, each]) => path !== '' && each.hasInstallScript)
    const names = running.map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
    assert.deepEqual([...new Set(names)].sort(), Object.keys(allowScripts).sort())
  })
})
