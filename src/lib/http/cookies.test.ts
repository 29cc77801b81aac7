import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cookieRemover, readCookies } from './cookies.ts'
import { HeaderList } from './header-list.ts'

const sent = (...values: string[]): HeaderList => HeaderList.of(values.map((value) => ['Cookie', value] as const))

test('reads the cookies of all headers in order, ignoring spaces around them', () => {
  const read = (...values: string[]) => readCookies(sent(...values), (name) => name === 'a')
  assert.deepEqual(read('a=1; b=2;a=3', ' a = 4 ', 'A=5; xa=6; a', '=a; a='), [
    ['a', '1'],
    ['a', '3'],
    ['a', '4'],
    ['a', ''],
  ])
  assert.deepEqual(read(), [])
})

test('treats the same characters as spaces as browsers do', () => {
  const spaces = ['\u00a0', '\u0085', '\v', '\f', '\ufeff', '\u2000']
  for (const space of spaces) {
    const headers = sent(`${space}a=1; a${space}=2; a=${space}3`)
    assert.deepEqual(
      readCookies(headers, (name) => name === 'a'),
      [['a', `${space}3`]],
    )
  }
})

test('removes cookies by name or prefix, and leaves all others unchanged', () => {
  const remove = cookieRemover(['my.session', 'my.nonce.*'])
  const cases: [before: string[], after: string[]][] = [
    [[], []],
    [['a=1;  b="2;3'], ['a=1;  b="2;3']],
    [['my.session=x'], []],
    [['a=1; my.session=x; b="2;3'], ['a=1; b="2;3']],
    [['my.session=x; my.nonce.0=x; my.sessions=1; My.session=2'], ['my.sessions=1; My.session=2']],
    [
      ['a=1', 'my.session=x', 'my.nonce.=; b=2'],
      ['a=1', 'b=2'],
    ],
    [['my.nonce.x =1;my.session=y;my.session=z'], []],
    [['my.session=x; b=\u00a0'], ['b=\u00a0']],
  ]
  for (const [before, after] of cases) {
    const headers = sent(...before)
    remove(headers)
    assert.deepEqual(headers.all('cookie'), after)
  }
})
