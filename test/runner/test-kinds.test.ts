/** Which run each test is in. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allTests } from './choose-tests.ts'
import { readImports } from './import-graph.ts'
import { isOfKind, type TestKind } from './test-kinds.ts'

const imports = readImports()
const all = allTests()
const of = (kind: TestKind) => all.filter((file) => isOfKind(kind, file, imports))

test('each is in one of `npm test` and `npm run test:programs`', () => {
  assert.deepEqual([...of('usual'), ...of('programs')].sort(), all)
})

test('those of programs are few, and `npm test` has those of a whole server in one process', () => {
  const programs = of('programs')
  assert.ok(programs.length < all.length / 6, `${programs.length} of ${all.length} start programs`)
  for (const file of [
    'test/e2e/start-stop.test.ts',
    'test/interop/ssh/traffic.test.ts',
    'test/interop/page/page.test.ts',
  ])
    assert.ok(programs.includes(file), file)
  for (const file of ['test/e2e/edge-routing.test.ts', 'test/conformance/resources.test.ts'])
    assert.ok(of('usual').includes(file), file)
})

test('units are a part of `npm test`, without what opens a socket, a store or a process', () => {
  const [units, usual] = [of('unit'), of('usual')]
  assert.ok(units.length > all.length / 3)
  assert.deepEqual(
    units.filter((file) => !usual.includes(file)),
    [],
  )
  assert.ok(units.includes('test/runner/group-tests.test.ts'))
  for (const file of [
    'test/support/databases.test.ts',
    'test/runner/run-group.test.ts',
    'test/conformance/paging.test.ts',
  ])
    assert.ok(!units.includes(file), file)
})
