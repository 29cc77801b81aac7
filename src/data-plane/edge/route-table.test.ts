import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { routeOfEveryPath, routeTable } from './route-table.ts'

const find = routeTable([
  [{ matchType: 'path_prefix', match: '/' }, 'root'],
  [{ matchType: 'path_prefix', match: '/api' }, 'api'],
  [{ matchType: 'exact_path', match: '/api/x' }, 'exact'],
  [{ matchType: 'path_prefix', match: '/api/x/' }, 'below'],
])

const rows: readonly [path: string, route: string][] = [
  ['/api/x', 'exact'],
  ['/api/x/', 'below'],
  ['/api/x/y', 'below'],
  ['/api/xy', 'api'],
  ['/api', 'api'],
  // A prefix is a string, not a list of segments (D41).
  ['/apiary', 'api'],
  ['/ap', 'root'],
  ['/z', 'root'],
]

for (const [path, route] of rows) test(`${path} goes to ${route}`, () => assert.equal(find(path), route))

test('without a match there is no route', () => {
  const only = routeTable([[{ matchType: 'exact_path', match: '/a' }, 1]])
  assert.equal(only('/'), undefined)
  assert.equal(only('/a/'), undefined)
  assert.equal(routeTable([])('/'), undefined)
})

test('whatever the prefixes, the longest that a path begins with is found', () => {
  // Few characters, so that many texts begin with one another; the last one is two code units.
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '\u{1F600}'), maxLength: 6 }).map((rest) => `/${rest}`)
  fc.assert(
    fc.property(fc.uniqueArray(text, { maxLength: 40 }), text, (prefixes, path) => {
      const find = routeTable(prefixes.map((match) => [{ matchType: 'path_prefix', match }, match]))
      const fitting = prefixes.filter((prefix) => path.startsWith(prefix)).sort((a, b) => b.length - a.length)
      assert.equal(find(path), fitting[0])
    }),
  )
})

test('the route of every path is the only one, for the prefix /', () => {
  const prefix = (match: string) => [{ matchType: 'path_prefix', match }, match] as const
  assert.equal(routeOfEveryPath([prefix('/')]), '/')
  assert.equal(routeOfEveryPath([prefix('/a')]), undefined)
  assert.equal(routeOfEveryPath([[{ matchType: 'exact_path', match: '/' }, '/']]), undefined)
  assert.equal(routeOfEveryPath([prefix('/'), prefix('/a')]), undefined)
  assert.equal(routeOfEveryPath([]), undefined)
})
