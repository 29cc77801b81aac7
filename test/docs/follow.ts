/** Follows a page from top to bottom as its reader would: one test for each block, in one home, in order. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { type Block, blocksOf } from './page.ts'
import { Reader } from './reader.ts'

export interface PageReader {
  /** The environment of the reader. */
  readonly env?: Readonly<Record<string, string>>
  /**
   * What the reader has beforehand, by the text that the page has for it, such as the port of their service or a name
   * in their domain. Each text is looked for as a whole word.
   */
  readonly prepare?: (reader: Reader) => Promise<Readonly<Record<string, string>>>
  /** Blocks that another test runs, by their language or how they begin, with the name of that test. */
  readonly testedBy?: Readonly<Record<string, string>>
  /** Runs before a block, by how the block begins; returns the output of a server that it started, or nothing. */
  readonly before?: Readonly<Record<string, (reader: Reader) => string | Promise<string>>>
  /**
   * Checks a block, by how it begins, beyond that every command succeeded. It gets the output, or the text of a block
   * in another language than that of the shell, which it has to run itself.
   */
  readonly checks?: Readonly<Record<string, (output: string, reader: Reader) => void | Promise<void>>>
}

/** The ports that the pages use, in the order of the line that a server prints when it listens. */
const LISTENING =
  /^SSH: \S+:(\d+), .*\nListening: API \S+:(\d+), metrics \S+:(\d+), agents \S+:(\d+), HTTPS \S+:(\d+), HTTP \S+:(\d+)$/m
const usualPorts = ['2222', '7400', '7401', '7443', '8443', '8080']

/** The secrets that the first start prints, and the texts of pages that leave them out. */
const shownOnce: readonly [printed: RegExp, left: string][] = [
  [/^ {2}Admin API key +(\S+)$/m, 'POSTERN_API_KEY=…'],
  [/^ {2}Agent authtoken +(\S+)$/m, '--authtoken …'],
]

/** An error from `curl`, which counts any answer as a success. */
const REFUSED = /^curl was answered [45]\d\d$|^curl: \(\d+\)/m

/** Commands that only read, so that they can be repeated. */
const VISITS = /^(curl (?!.*(-d|-X) ).*\n)+$/

/** How long a visit is retried, in milliseconds. */
const PATIENCE_MS = 15_000

/** Programs that readers of the pages have, and a machine that runs tests may lack. */
const missing = ['bash', 'curl', 'openssl'].filter((name) => spawnSync(name, ['--version']).error !== undefined)
const why = missing.length > 0 && `missing: ${missing.join(', ')}`
if (why) console.log(`the commands on the pages are not run; ${why}`)

export function followPage(
  page: string,
  { env, prepare, testedBy = {}, before: first = {}, checks = {} }: PageReader = {},
): void {
  describe(page, { skip: why }, () => {
    const others = Object.keys(testedBy)
    const blocks = blocksOf(page).filter(
      ({ language, text }) => !others.some((other) => language === other || text.startsWith(other)),
    )
    let reader: Reader
    const given = new Map<string, string>()
    let hasFailed = false

    before(async () => {
      reader = new Reader(env)
      for (const [there, here] of Object.entries((await prepare?.(reader)) ?? {})) given.set(there, here)
      learn(reader.printed)
    })
    after(() => reader.close())

    /** Puts what this reader has into a text of the page. */
    const here = (text: string): string => {
      let mine = text
      for (const [there, value] of given) {
        const whole = new RegExp(`(?<![\\w-])${escaped(there)}(?![\\w-])`, 'g')
        mine = mine.replace(whole, () => value)
      }
      return mine
    }
    const command = (text: string): string => {
      const mine = here(text)
      assert.doesNotMatch(mine, /…/, 'a command that leaves something out cannot be run')
      return mine
    }
    const learn = (output: string): void => {
      const [, ...ports] = LISTENING.exec(output) ?? []
      for (const [i, port] of ports.entries()) given.set(usualPorts[i] ?? '', port)
      const [, api] = ports
      if (api !== undefined) reader.meet({ POSTERN_API_URL: `http://127.0.0.1:${api}` })
      for (const [printed, left] of shownOnce) {
        const [, secret] = printed.exec(output) ?? []
        if (secret !== undefined) given.set(left, left.replace('…', secret))
      }
    }

    const follow: Record<Block['use'], (block: Block, isChecked: boolean) => Promise<string>> = {
      async run({ language, text }, isChecked) {
        if (language === 'sh') return reader.run(command(text), { mayFail: VISITS.test(text) })
        assert.ok(isChecked, `cannot run this block; give it a check, or mark it \`file=…\` or \`not-run: …\``)
        return here(text)
      },
      async stays({ text }) {
        const output = await reader.stays(command(text))
        learn(output)
        return output
      },
      async each({ text }) {
        const output: string[] = []
        for (const line of command(text).trim().split('\n')) output.push(await reader.passes(line))
        return output.join('')
      },
      async file({ about, text }) {
        reader.write(about, here(text))
        return ''
      },
      async shown({ text }) {
        assertShown(here(text), reader.printed)
        return ''
      },
      async 'not-run'({ about }) {
        assert.ok(about.length > 10, 'a reason')
        return ''
      },
    }

    for (const block of blocks) {
      const name = block.use === 'not-run' ? `not run: ${block.about}` : (block.text.split('\n')[0] ?? '')
      test(`${page}:${block.line} ${name}`, async () => {
        const own = Object.entries(checks).filter(([begins]) => block.text.startsWith(begins))
        const look = async (): Promise<void> => {
          const output = await follow[block.use](block, own.length > 0)
          for (const [, check] of own) await check(output, reader)
          if (own.length === 0) assert.doesNotMatch(output, REFUSED, 'an unexpected error')
        }
        assert.ok(!hasFailed, 'an earlier block has failed')
        hasFailed = true
        for (const [begins, prepare] of Object.entries(first)) {
          if (block.text.startsWith(begins)) learn(await prepare(reader))
        }
        if (VISITS.test(block.text)) await patiently(look)
        else await look()
        hasFailed = false
      })
    }

    test(`${page} has every block that a check names`, () => {
      const missing = Object.keys(checks).filter((begins) => !blocks.some(({ text }) => text.startsWith(begins)))
      assert.deepEqual(missing, [])
    })
  })
}

/** Retries a visit: changes come into force within moments, and the first visit may be too early. */
async function patiently(look: () => Promise<void>): Promise<void> {
  const last = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      return await look()
    } catch (error) {
      if (performance.now() > last) throw error
    }
  }
}

/** Asserts that each line of `text` was printed, in this order. */
function assertShown(text: string, printed: string): void {
  const lines = printed.split('\n')
  let from = 0
  for (const line of text.split('\n')) {
    const pattern = new RegExp(`^${line.split('…').map(escaped).join('.*')}$`)
    const at = lines.findIndex((each, i) => i >= from && pattern.test(each))
    assert.ok(at >= 0, `nothing printed \`${line}\`, in:\n${printed}`)
    from = at
  }
}

/** Escapes a text for use in a pattern. */
function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')
}
