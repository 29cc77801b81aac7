/** `docs/policy.md`: every example runs unchanged, and every action, function and variable is on the page. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { run } from '../../src/cli/program.ts'
import { testTerminal } from '../../src/cli/testing/test-terminal.ts'
import { actionNames } from '../../src/modules/policy/engine/actions.ts'
import { functions, macros, methods } from '../../src/modules/policy/engine/functions.ts'
import { ownLists } from '../../src/modules/policy/engine/policy-phases.ts'
import { variables } from '../../src/modules/policy/engine/variables.ts'

const page = readFileSync(new URL('../../docs/policy.md', import.meta.url), 'utf8')
const known: readonly string[] = actionNames

/** Sections of the page, by heading. */
const sections = new Map(
  page.split(/^(?=#{2,3} )/m).map((section): [string, string] => [/^#+ (.*)$/m.exec(section)?.[1] ?? '', section]),
)

/** Sections of actions, by action. */
const ofActions = new Map(
  [...sections].flatMap(([heading, text]) => {
    const [, name] = /^`([a-z-]+)`$/.exec(heading) ?? []
    return name === undefined ? [] : [[name, text] as const]
  }),
)

function examplesIn(section: string): string[] {
  return [...section.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, example = '']) => example)
}

describe('every example runs:', () => {
  for (const [heading, section] of sections) {
    for (const [i, example] of examplesIn(section).entries()) {
      test(`${heading.replaceAll('`', '')} ${i + 1}`, async () => {
        const terminal = testTerminal({ input: example })
        const code = await run(['policy', 'test', '-'], terminal)
        const { out, err } = terminal.printed
        assert.equal(code, 0, `${out}${err}`)
      })
    }
  }
})

describe('the page has', () => {
  for (const name of known) {
    test(`a section with an example of ${name}`, () => {
      const section = ofActions.get(name)
      assert.ok(section, `docs/policy.md has no section on ${name}`)
      assert.ok(
        examplesIn(section).some((example) => example.includes(`type: ${name}`)),
        `the section on ${name} has no example of it`,
      )
    })
  }

  test('every function', () => {
    const text = sections.get('Functions') ?? ''
    const named = new Set([...text.matchAll(/`[^`]+`/g)].flatMap(([code]) => code.match(/[a-zA-Z_]\w*(\.\w+)?/g) ?? []))
    const all = [...named].flatMap((name) => [name, name.split('.').at(-1) ?? ''])
    const missing = Object.keys({ ...functions, ...methods, ...macros }).filter((name) => !all.includes(name))
    assert.deepEqual(missing, [])
  })

  test('every variable, two names deep', () => {
    const text = sections.get('Variables') ?? ''
    const shapes = variables({ place: 'route', phase: 'response', lists: ownLists })
    const paths = Object.entries(shapes).flatMap(([root, { fields = {} }]) => [
      root,
      ...Object.entries(fields).map(([field]) => `${root}.${field}`),
    ])
    const isDocumented = (path: string): boolean => {
      const [root = '', field] = path.split('.')
      if (field === undefined) return text.includes(`\`${root}`)
      // A variable is written in full, or as a field in the row of its parent.
      return text.includes(`\`${path}`) || new RegExp(`^\\| .*\`${root}\`.*\`\\.${field}\``, 'm').test(text)
    }
    assert.ok(paths.length > 30)
    assert.deepEqual(
      paths.filter((path) => !isDocumented(path)),
      [],
    )
  })
})
