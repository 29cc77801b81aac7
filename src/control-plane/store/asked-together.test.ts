import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../test/support/until.ts'
import { AskedTogether } from './asked-together.ts'

/** Answers when it is told to, and records its questions. */
class Database {
  readonly asked: (readonly string[])[] = []
  readonly questions: AskedTogether<string, string>
  #next = Promise.withResolvers<void>()

  constructor({ apartMs = 0 } = {}) {
    const answer = async (keys: readonly string[]) => {
      this.asked.push(keys)
      await this.#next.promise
      return (key: string) => key.toUpperCase()
    }
    this.questions = new AskedTogether(answer, { apartMs: () => apartMs })
  }

  answer(): void {
    this.#next.resolve()
    this.#next = Promise.withResolvers()
  }

  fail(error: Error): void {
    this.#next.reject(error)
    this.#next = Promise.withResolvers()
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('the first question is asked at once, and those that come meanwhile together', async () => {
  const database = new Database()
  const first = database.questions.ask('a')
  const rest = ['b', 'c', 'b'].map((key) => database.questions.ask(key))
  assert.deepEqual(database.asked, [['a']])
  database.answer()
  assert.equal(await first, 'A')
  await settled()
  assert.deepEqual(database.asked, [['a'], ['b', 'c', 'b']])
  database.answer()
  assert.deepEqual(await Promise.all(rest), ['B', 'C', 'B'])
})

test('an answer under way is not given to a later question', async () => {
  const database = new Database()
  const before = database.questions.ask('a')
  const later = database.questions.ask('a')
  database.answer()
  await before
  await settled()
  assert.deepEqual(database.asked, [['a'], ['a']])
  database.answer()
  assert.equal(await later, 'A')
})

test('a failed query fails its own questions, and none after', async () => {
  const database = new Database()
  const first = database.questions.ask('a')
  const next = database.questions.ask('b')
  database.fail(new Error('away'))
  await assert.rejects(first, /away/)
  await settled()
  database.answer()
  assert.equal(await next, 'B')
})

test('a query answers a bounded number of questions', async () => {
  const database = new Database()
  const all = Array.from({ length: 1202 }, (_, i) => database.questions.ask(String(i)))
  for (let i = 0; i < 4; i++) {
    database.answer()
    await settled()
  }
  assert.equal((await Promise.all(all)).at(-1), '1201')
  assert.deepEqual(
    database.asked.map(({ length }) => length),
    [1, 500, 500, 201],
  )
})

test('a query that is not answered does not hold up later questions', async () => {
  const keys: (readonly string[])[] = []
  const questions = new AskedTogether(async (asked: readonly string[]) => {
    keys.push(asked)
    if (asked.includes('never')) await new Promise(() => {})
    return (key: string) => key.toUpperCase()
  })
  void questions.ask('never')
  assert.deepEqual(await Promise.all([questions.ask('a'), questions.ask('b')]), ['A', 'B'])
  assert.deepEqual(keys, [['never'], ['a', 'b']])
})

test('waiting questions are gathered for a while after the query before, and a lone one is not', async () => {
  const database = new Database({ apartMs: 200 })
  const ask = (key: string): Promise<string> => database.questions.ask(key)
  for (const key of ['a', 'b']) {
    const answered = ask(key)
    database.answer()
    await answered
    await settled()
  }
  assert.deepEqual(database.asked, [['a'], ['b']])
  const first = ask('c')
  const second = ask('d')
  database.answer()
  await first
  await settled()
  const third = ask('e')
  assert.deepEqual(database.asked.slice(2), [['c']])
  await until('the next is asked', () => database.asked.length === 4)
  database.answer()
  assert.deepEqual(await Promise.all([second, third]), ['D', 'E'])
  assert.deepEqual(database.asked.slice(3), [['d', 'e']])
  // After two that came together more may follow, so the next question is not asked alone.
  await settled()
  const more = [ask('f'), ask('g')]
  assert.equal(database.asked.length, 4)
  await until('the next is asked', () => database.asked.length === 5)
  database.answer()
  await Promise.all(more)
  assert.deepEqual(database.asked.slice(4), [['f', 'g']])
})

test('many waiting questions are not gathered any longer', async () => {
  const database = new Database({ apartMs: 60_000 })
  const all = Array.from({ length: 160 }, (_, i) => database.questions.ask(String(i)))
  for (let i = 0; i < 2; i++) {
    database.answer()
    await settled()
  }
  assert.equal((await Promise.all(all)).length, 160)
  assert.deepEqual(
    database.asked.map(({ length }) => length),
    [1, 159],
  )
})
