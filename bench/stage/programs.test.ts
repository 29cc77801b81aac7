import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isAlive, treeOf } from './proc.ts'
import { findProgram, Programs } from './programs.ts'

describe('programs', { skip: process.platform !== 'linux' && 'needs /proc' }, () => {
  test('end with all their descendants, even those that ignore SIGTERM', async () => {
    const programs = new Programs()
    const stubborn = `trap "" TERM; "${process.execPath}" -e 'process.on("SIGTERM",()=>{});console.log("up");setInterval(()=>{},1000)'; true`
    const program = programs.start('sh', ['-c', stubborn])
    await program.says(/up/)
    const tree = treeOf(programs.pids)
    assert.equal(tree.length, 2)
    await programs.end()
    assert.deepEqual(tree.filter(isAlive), [])
  })

  test('cannot be started once all have been ended', async () => {
    const programs = new Programs()
    await programs.end()
    assert.throws(() => programs.start('sleep', ['60']), /cannot start programs/)
  })

  test('that end before they are ready reject with their output', async () => {
    const programs = new Programs()
    const program = programs.start('sh', ['-c', 'echo no such key >&2; exit 3'])
    await assert.rejects(program.says(/ready/), /sh ended: no such key/)
  })

  test('that run to their end resolve with their output, or reject', async () => {
    const programs = new Programs()
    assert.equal(await programs.run('sh', ['-c', 'echo out; echo err >&2'], { timeoutMs: 10_000 }), 'out\n')
    await assert.rejects(programs.run('sh', ['-c', 'echo why >&2; exit 3'], { timeoutMs: 10_000 }), /ended with 3: why/)
    await assert.rejects(programs.run('sleep', ['60'], { timeoutMs: 50 }), /did not end within 50 ms/)
  })

  test('pass on their output line by line', async () => {
    const programs = new Programs()
    const lines: string[] = []
    const onLine = (line: string): void => void lines.push(line)
    const program = programs.start('sh', ['-c', 'printf "a b\\nc"; printf "d\\n"; echo e >&2; exec sleep 60'], {
      onLine,
    })
    await program.says(/e/)
    await programs.end()
    assert.deepEqual(lines.toSorted(), ['a b', 'cd', 'e'])
  })

  test('that are not installed are not found', () => {
    assert.ok(findProgram('sh'))
    assert.equal(findProgram('no-such-program'), undefined)
  })
})
