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
   * What the reader has beforehand, and what stands on the page for it: the port of a service of theirs, a name of their
   * domain. Each is looked for as a whole word.
   */
  readonly prepare?: (reader: Reader) => Promise<Readonly<Record<string, string>>>
  /** Blocks that another test runs, by their language or how they begin, with the name of that test. */
  readonly elsewhere?: Readonly<Record<string, string>>
  /** What has to be so before a block, by how the block begins; gives what a server that it started has printed. */
  readonly before?: Readonly<Record<string, (reader: Reader) => string | Promise<string>>>
  /**
   * What to look at after a block, by how the block begins, beyond that every command succeeded. It gets what was printed,
   * and the text of a block in another language than that of the shell, which it has to run itself.
   */
  readonly checks?: Readonly<Record<string, (said: string, reader: Reader) => void | Promise<void>>>
}

/** The ports that the pages speak of, in the order of the line that a server prints when it listens. */
const LISTENING =
  /^SSH: \S+:(\d+), .*\nListening: API \S+:(\d+), metrics \S+:(\d+), agents \S+:(\d+), HTTPS \S+:(\d+), HTTP \S+:(\d+)$/m
const usualPorts = ['2222', '7400', '7401', '7443', '8443', '8080']

/** What the first start shows, and where a page leaves it out. */
const shownOnce: readonly [printed: RegExp, left: string][] = [
  [/^ {2}Admin API key +(\S+)$/m, 'POSTERN_API_KEY=…'],
  [/^ {2}Agent authtoken +(\S+)$/m, '--authtoken …'],
]

/** An answer to `curl`, which takes any for a success. */
const REFUSED = /^curl was answered [45]\d\d$|^curl: \(\d+\)/m

/** Commands that only look, and can be given again. */
const VISITS = /^(curl (?!.*(-d|-X) ).*\n)+$/

/** How long a visitor tries again, in milliseconds. */
const PATIENCE_MS = 15_000

/** What readers of the pages have, and a machine that runs tests may lack. */
const missing = ['bash', 'curl', 'openssl'].filter((name) => spawnSync(name, ['--version']).error !== undefined)
const why = missing.length > 0 && `not there: ${missing.join(', ')}`
if (why) console.log(`the commands of the pages are not run: ${why}`)

export function followPage(
  page: string,
  { env, prepare, elsewhere = {}, before: first = {}, checks = {} }: PageReader = {},
): void {
  describe(page, { skip: why }, () => {
    const others = Object.keys(elsewhere)
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

    /** A text of the page with what this reader has in place of what it speaks of. */
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
    const learn = (said: string): void => {
      const [, ...ports] = LISTENING.exec(said) ?? []
      for (const [i, port] of ports.entries()) given.set(usualPorts[i] ?? '', port)
      const [, api] = ports
      if (api !== undefined) reader.meet({ POSTERN_API_URL: `http://127.0.0.1:${api}` })
      for (const [printed, left] of shownOnce) {
        const [, secret] = printed.exec(said) ?? []
        if (secret !== undefined) given.set(left, left.replace('…', secret))
      }
    }

    const follow: Record<Block['use'], (block: Block, isChecked: boolean) => Promise<string>> = {
      async run({ language, text }, isChecked) {
        if (language === 'sh') return reader.run(command(text), { mayFail: VISITS.test(text) })
        assert.ok(isChecked, `nobody knows how to run this; give it a check, or say \`file=…\` or \`not-run: …\``)
        return here(text)
      },
      async stays({ text }) {
        const said = await reader.stays(command(text))
        learn(said)
        return said
      },
      async each({ text }) {
        const said: string[] = []
        for (const line of command(text).trim().split('\n')) said.push(await reader.passes(line))
        return said.join('')
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
          const said = await follow[block.use](block, own.length > 0)
          for (const [, check] of own) await check(said, reader)
          if (own.length === 0) assert.doesNotMatch(said, REFUSED, 'an answer that nobody expects')
        }
        assert.ok(!hasFailed, 'a block before this one has failed')
        hasFailed = true
        for (const [begins, prepare] of Object.entries(first)) {
          if (block.text.startsWith(begins)) learn(await prepare(reader))
        }
        if (VISITS.test(block.text)) await patiently(look)
        else await look()
        hasFailed = false
      })
    }

    test(`${page} has every block that is looked at`, () => {
      const missing = Object.keys(checks).filter((begins) => !blocks.some(({ text }) => text.startsWith(begins)))
      assert.deepEqual(missing, [])
    })
  })
}

/** What was changed is in force within moments, and a visitor may come earlier. */
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

/** Each line of `text` was printed, in this order. */
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

/** A text as it is, in a pattern. */
function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')
}
