/** Keeps the house rules that no linter knows: how files begin, how long they grow, what is pinned. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { readSources } from './support/sources.ts'

const LINES_AT_MOST = 500

// With a letter in brackets, so that the rule does not find itself.
const leftover = /\b(T[O]DO|F[I]XME)\b/
// `t.skip('why')` stays: a test may find at run time that a program it needs is not there.
const singled = /\b(test|it|describe|suite)\.(only|skip|todo)\(|\b(only|skip|todo): true\b/
const drawer = /(^|\/)(utils?|helpers?|common|services|core)(\/|\.tsx?$)/
const exact = /^\d+\.\d+\.\d+(-[\w.]+)?$/

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
  [`a file has at most ${LINES_AT_MOST} lines`]: {
    holds: (text) => text.trimEnd().split('\n').length <= LINES_AT_MOST,
    folders: ['src'],
    broken: [{ text: 'a\n'.repeat(LINES_AT_MOST + 1) }],
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

describe('the dependencies', () => {
  test('are pinned to one version each', () => {
    const all = ['package.json', 'test/interop/openapi/package.json'].flatMap((file) => {
      const manifest = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Record<string, string> | undefined>
      const kinds = ['dependencies', 'devDependencies', 'optionalDependencies']
      return kinds.flatMap((kind) => Object.entries(manifest[kind] ?? {}))
    })
    assert.ok(all.length > 0)
    assert.deepEqual(
      all.filter(([, version]) => !exact.test(version)),
      [],
    )
    for (const loose of ['^1.2.3', '~1.2.3', '1.x', '*', 'latest', '>=1.2.3']) assert.doesNotMatch(loose, exact)
  })

  test('are locked without naming the registry they came from', () => {
    // A folder of ours is no registry.
    assert.doesNotMatch(readFileSync('package-lock.json', 'utf8'), /"resolved": "(?!test\/)/)
  })
})
