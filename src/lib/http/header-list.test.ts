import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HeaderList } from './header-list.ts'
import { headerName } from './header-name.ts'

const three = (): HeaderList =>
  HeaderList.of([
    ['Set-Cookie', 'a=1'],
    ['X-Other', 'x'],
    ['set-cookie', 'b=2'],
  ])

describe('a list of headers', () => {
  test('keeps order, spelling and repeats, and finds names in any spelling', () => {
    const list = three()
    assert.deepEqual(
      [...list],
      [
        ['Set-Cookie', 'a=1'],
        ['X-Other', 'x'],
        ['set-cookie', 'b=2'],
      ],
    )
    assert.deepEqual([list.get('set-cookie'), list.count('set-cookie'), list.size], ['a=1', 2, 3])
    assert.deepEqual(list.all('set-cookie'), ['a=1', 'b=2'])
    assert.deepEqual([list.has('x-other'), list.has('x-othe'), list.get('none')], [true, false, undefined])
  })

  test('removes headers at its beginning, at its end, and all of them, each value with its name', () => {
    const cases: [unwanted: string[], left: [string, string][]][] = [
      [['set-cookie'], [['X-Other', 'x']]],
      [
        ['x-other'],
        [
          ['Set-Cookie', 'a=1'],
          ['set-cookie', 'b=2'],
        ],
      ],
      [['set-cookie', 'x-other'], []],
      [[], [...three()]],
    ]
    for (const [unwanted, left] of cases) {
      const list = three()
      list.removeWhere(({ key }) => unwanted.includes(key))
      assert.deepEqual([...list], left)
      assert.equal(list.size, left.length)
      list.add('Last', 'z')
      assert.deepEqual([...list], [...left, ['Last', 'z']])
    }
  })

  test('sets one instead of all with its name, and puts one before all', () => {
    const list = three()
    list.set('SET-COOKIE', 'c=3')
    list.prepend('First', '1')
    assert.deepEqual(
      [...list],
      [
        ['First', '1'],
        ['X-Other', 'x'],
        ['SET-COOKIE', 'c=3'],
      ],
    )
  })

  test('is independent of its copy', () => {
    const list = three()
    const copy = list.clone()
    copy.remove('set-cookie')
    assert.deepEqual([copy.size, list.size], [1, 3])
  })

  test('counts as checked only while every value added to it was valid', () => {
    const checked = new HeaderList()
    checked.addChecked(headerName('A'), 'a')
    assert.ok(checked.isChecked && checked.clone().isChecked)
    const mixed = checked.clone()
    mixed.addAll(HeaderList.of([['B', 'b\u010d']]))
    assert.ok(!mixed.isChecked && !mixed.clone().isChecked)
    for (const change of ['add', 'prepend', 'set'] as const) {
      const list = checked.clone()
      list[change]('B', 'b\t\x80')
      assert.ok(list.isChecked, change)
      for (const unfit of ['\r', '\n', '\0', '\x7f', '\u010a']) {
        const spoiled = list.clone()
        spoiled[change]('C', `c${unfit}`)
        spoiled[change]('C', 'c')
        assert.ok(!spoiled.isChecked, JSON.stringify([change, unfit]))
      }
    }
  })
})
