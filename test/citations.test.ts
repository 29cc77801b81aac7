/** Whatever code, tests and pages cite by number can be read in this repository. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { definedInRows, definedInSections, findCitations } from './support/citations.ts'
import { readSources } from './support/sources.ts'

const read = (path: string): string => readFileSync(path, 'utf8')
const defined = [
  ...definedInRows(read('docs/semantics.md')),
  ...definedInRows(read('docs/decisions.md')),
  ...definedInSections(read('docs/contract.md')),
]

/** Those two hold examples of citations. */
const ownFiles = ['test/citations.test.ts', 'test/support/citations.ts']
const cited = [
  ...['src', 'test', 'bench'].flatMap((folder) => [...readSources(folder)]),
  ...['*.md', 'docs/*.md', 'bench/*.md'].flatMap((pages) => globSync(pages)).map((page) => [page, read(page)] as const),
]
  .filter(([file]) => !ownFiles.includes(file))
  .flatMap(([file, text]) => findCitations(text).map((citation) => ({ file, citation })))

test('every number is defined once', () => {
  assert.deepEqual(
    defined.filter((number, i) => defined.indexOf(number) !== i),
    [],
  )
})

for (const [kind, form] of Object.entries({ rules: /^R-/, decisions: /^D/, 'parts of the contract': /^contract/ })) {
  test(`${kind} that are cited are defined`, () => {
    const ofKind = cited.filter(({ citation }) => form.test(citation))
    assert.ok(ofKind.length > 10, `only ${ofKind.length} citations were found`)
    assert.deepEqual(
      ofKind.filter(({ citation }) => !defined.includes(citation)),
      [],
    )
  })
}

test('a § has the name of its document in front of it', () => {
  assert.deepEqual(
    cited.filter(({ citation }) => citation.startsWith('§')),
    [],
  )
})

describe('citations are found in', () => {
  const cases: Record<string, [text: string, ...found: string[]]> = {
    'a comment': ['// R-3.2: in order, see D28a and (D7).', 'R-3.2', 'D28a', 'D7'],
    'a range': ['/** D8 to D11, R-5.1 to R-5.3 */', 'R-5.1', 'R-5.2', 'R-5.3', 'D8', 'D9', 'D10', 'D11'],
    'two lines': ['/**\n * As D8 to\n * D9 say.\n */', 'D8', 'D9'],
    'a list of sections': ['(contract 4.6, 4.7; D10)', 'D10', 'contract 4.6', 'contract 4.7'],
    'a part': ['Contract part 8: bytes', 'contract 8'],
    'parts the other way round': ['parts 5 and 9 of the contract', 'contract 5', 'contract 9'],
    'rules of a section': ['Contract 2.3, rules 2 to 3', 'contract 2.3', 'contract 2.3 rule 2', 'contract 2.3 rule 3'],
    'a section of nobody': ['design §6.1, and §7', '§6.1', '§7'],
    'no section of a standard': [
      'RFC 9110 §5.5 and §7, X.690 §8.3, SAML core §2.7.2, XML 1.0 §2.3, PROXY protocol §2.2',
    ],
    'no escape, hash or longer word': ["'limit=%D9%A5'; MD5; D1000; AD12"],
  }
  for (const [name, [text, ...found]] of Object.entries(cases)) {
    test(name, () => assert.deepEqual(findCitations(text).sort(), found.sort()))
  }
})

test('definitions are rows with a text, and numbered rules below a heading', () => {
  assert.deepEqual(definedInRows('| D1 | a | b |\n| D2 |\n| R-1.4 | c |\n| x | D3 |'), ['D1', 'R-1.4'])
  assert.deepEqual(definedInSections('## Part 4: all\n### 4.3 Some\n\n1. One\n\n## Other\n'), [
    'contract 4',
    'contract 4.3',
    'contract 4.3 rule 1',
  ])
})

test('the drawing of what a request passes through names what is there', () => {
  const [, section = ''] = read('docs/life-of-a-connection.md').split('## The objects that a request passes through')
  const [, drawing = ''] = section.split('```')
  const named = Array.from(drawing.matchAll(/^ +(\w+) {2,}.* ([\w./-]+\.ts)$/gm), ([, name = '', file = '']) => ({
    name,
    file,
  }))
  assert.ok(named.length > 30)
  assert.deepEqual(
    named.filter(
      ({ name, file }) => !new RegExp(`^export (class|(async )?function) ${name}\\b`, 'm').test(read(`src/${file}`)),
    ),
    [],
  )
})
