import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreAway } from '../store/store.ts'
import { AnswersWhileDown } from './answers-while-down.ts'

const away = async (): Promise<never> => {
  throw new StoreAway(new Error('away'))
}

test('an answer is repeated while the database is down', async () => {
  const remembered = new AnswersWhileDown<string>()
  assert.equal(await remembered.answer('a', async () => 'one'), 'one')
  assert.equal(await remembered.answer('a', away), 'one')
  assert.equal(await remembered.answer('a', async () => 'two'), 'two')
  assert.equal(await remembered.answer('a', away), 'two')
})

test('a question that was never answered fails while the database is down', async () => {
  const remembered = new AnswersWhileDown<string>()
  await assert.rejects(remembered.answer('a', away), StoreAway)
})

test('an answer that is gone is forgotten', async () => {
  const remembered = new AnswersWhileDown<string>()
  await remembered.answer('a', async () => 'one')
  assert.equal(await remembered.answer('a', async () => undefined), undefined)
  await assert.rejects(remembered.answer('a', away), StoreAway)
})

test('another error is passed on', async () => {
  const remembered = new AnswersWhileDown<string>()
  await remembered.answer('a', async () => 'one')
  await assert.rejects(
    remembered.answer('a', async () => Promise.reject(new Error('broken'))),
    /broken/,
  )
})

test('the oldest are forgotten first', async () => {
  const remembered = new AnswersWhileDown<string>({ max: 2 })
  for (const key of ['a', 'b', 'a', 'c']) await remembered.answer(key, async () => key)
  assert.equal(await remembered.answer('a', away), 'a')
  assert.equal(await remembered.answer('c', away), 'c')
  await assert.rejects(remembered.answer('b', away), StoreAway)
})
