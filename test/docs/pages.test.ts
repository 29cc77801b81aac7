/** All pages together: every page with commands has a test, every command on them exists, and no link is broken. */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { run } from '../../src/cli/program.ts'
import { testTerminal } from '../../src/cli/testing/test-terminal.ts'
import { readSources } from '../support/sources.ts'
import { type Block, blocksOf, readPage } from './page.ts'

const pages = ['README.md', ...globSync('docs/*.md')].sort()

/** The text that a release signs begins like a command. */
const SIGNED_LINE = 'postern release <version>'

describe('the marks of blocks', () => {
  const marks: readonly [info: string, use: Partial<Block> | RegExp][] = [
    ['sh', { language: 'sh', use: 'run', about: '' }],
    ['sh stays', { language: 'sh', use: 'stays' }],
    ['sh each', { language: 'sh', use: 'each' }],
    ['text shown', { language: 'text', use: 'shown' }],
    ['yaml file=postern.yml', { language: 'yaml', use: 'file', about: 'postern.yml' }],
    ['sh not-run: needs root', { language: 'sh', use: 'not-run', about: 'needs root' }],
    ['sh not-run:', /^Error: a\.md:3: /],
    ['sh skip', /^Error: a\.md:3: `skip` is not a mark/],
  ]
  for (const [info, use] of marks) {
    test(info, () => {
      const read = () => blocksOf('a.md', `# A\n\n   \`\`\`${info}\n   one\n     two\n   \`\`\`\n`)
      if (use instanceof RegExp) return assert.throws(read, use)
      const [block] = read()
      assert.deepEqual({ ...block, ...use }, block)
      assert.deepEqual([block?.line, block?.text], [3, 'one\n  two\n'])
    })
  }
})

describe('every page with commands', () => {
  const tests = [...readSources('test')].filter(
    ([file]) => file.endsWith('.test.ts') && file !== 'test/docs/pages.test.ts',
  )
  for (const page of pages) {
    // Drawings have no language.
    const blocks = blocksOf(page).filter(({ language }) => language !== '')
    if (blocks.length === 0) continue
    test(`${page} has a test`, () => {
      assert.ok(
        tests.some(([, text]) => text.includes(page)),
        `no test runs what is on ${page}; see test/docs/follow.ts`,
      )
    })
  }

  test('leaves out what cannot run, with a reason', (t) => {
    const left = pages.flatMap((page) => blocksOf(page).filter(({ use }) => use === 'not-run'))
    for (const { page, line, about } of left) t.diagnostic(`not run: ${page}:${line}, ${about}`)
    assert.ok(left.every(({ about }) => about.length > 10))
  })
})

describe('every command of ours', () => {
  const named = pages.flatMap((page) => commandsOn(page).map((command) => ({ page, command })))

  test('is found on the pages', () => assert.ok(named.length > 60, String(named.length)))

  for (const { page, command } of named) {
    test(`exists: ${page} \`${command}\``, async () => {
      const { words, flags } = partsOf(command)
      const terminal = testTerminal()
      assert.equal(await run([...words, '--help'], terminal), 0, terminal.printed.err)
      const help = terminal.printed.out
      const [, usage = ''] = /^Usage: postern ?(.*)$/m.exec(help) ?? []
      for (const word of words) assert.ok(usage.split(/[ |]/).includes(word), `\`${word}\` is not a command`)
      for (const flag of flags) assert.match(help, new RegExp(`(^|[ ,])${flag}\\b`, 'm'), flag)
    })
  }
})

test('every npm script that a page names exists', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  for (const page of [...pages, 'CONTRIBUTING.md']) {
    for (const [, script = ''] of readPage(page).matchAll(/npm run (?:-s )?([\w-]+)/g)) {
      assert.ok(script in scripts, `${page}: npm run ${script}`)
    }
  }
})

test('every link to a file or heading has a target', () => {
  const broken: string[] = []
  for (const page of pages) {
    for (const [, path = '', anchor] of readPage(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)) {
      const file = path === '' ? page : join(dirname(page), path)
      if (!existsSync(file)) broken.push(`${page}: ${file}`)
      else if (anchor !== undefined && !anchorsOf(file).includes(anchor)) broken.push(`${page}: ${file}#${anchor}`)
    }
  }
  assert.deepEqual(broken, [])
})

/** Commands in the text and in blocks, without what follows them in the shell. */
function commandsOn(page: string): string[] {
  const text = readPage(page)
  const inline = [...text.matchAll(/(?<!`)`(?:npx )?(postern [a-z][^`\n]*)`(?!`)/g)].map(([, command = '']) => command)
  const inBlocks = blocksOf(page)
    .filter(({ language }) => language === 'sh')
    .flatMap((block) => [...block.text.matchAll(/(?:^ *|\$\(|&& |\| )(?:npx )?(postern [a-z](?:\\\n|[^\n#|])*)/gm)])
    .map(([, command = '']) => command.replaceAll('\\\n', ' '))
  const all = [...inline, ...inBlocks].map((command) => command.trim())
  return [...new Set(all)].filter((command) => command !== SIGNED_LINE)
}

/** The words that name a command, and the flags after them. */
function partsOf(command: string): { words: string[]; flags: string[] } {
  const [, ...all] = command.replaceAll(/'[^']*'|"[^"]*"/g, 'quoted').split(/\s+/)
  const end = all.findIndex((word) => !/^[a-z][a-z-]*$/.test(word))
  const depth: Readonly<Record<string, number>> = { api: 3, admin: 2, policy: 2 }
  const words = all.slice(0, end === -1 ? all.length : end).slice(0, depth[all[0] ?? ''] ?? 1)
  return { words, flags: all.filter((word) => /^--[a-z]/.test(word)).map((word) => word.replace(/=.*/, '')) }
}

/** Anchors, as GitHub derives them from headings. */
function anchorsOf(file: string): string[] {
  const headings = readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)
  return [...headings].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
