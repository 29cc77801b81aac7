import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { cpuSeconds, parseStat, residentBytes, treeOf } from './proc.ts'

/** Fields 4 to 22 of /proc/<pid>/stat; each field that is read has its own number as value. */
const rest = '40 5 6 7 8 9 10 11 12 13 1400 150 16 1 18 19 20 21 2200 23 24'

describe('a line of /proc/<pid>/stat', () => {
  const names = ['node', 'sshd: a b', 'a) R 1 (b', ')']
  for (const name of names) {
    test(`is read after the name ${name}`, () => {
      assert.deepEqual(parseStat(`17 (${name}) S ${rest}`), { pid: 17, parent: 40, ticks: 1567, startedAt: 2200 })
    })
  }

  for (const [what, line] of [
    ['nothing', ''],
    ['a zombie', `17 (node) Z ${rest}`],
  ] as const) {
    test(`of ${what} gives no process`, () => assert.equal(parseStat(line), undefined))
  }
})

describe('a tree of processes', { skip: process.platform !== 'linux' && 'needs /proc' }, () => {
  test('includes grandchildren, with their CPU time and memory', async () => {
    const burn = 'while(process.cpuUsage().user<200_000);console.log("done");setInterval(()=>{},1000)'
    const child = spawn('sh', ['-c', `"${process.execPath}" -e '${burn}'; true`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const pid = child.pid
    assert.ok(pid !== undefined)
    try {
      await once(child.stdout, 'data')
      const tree = treeOf([pid])
      assert.equal(tree.length, 2, 'the shell and what it runs')
      assert.ok(cpuSeconds([pid]) > 0.1)
      assert.ok(residentBytes([pid]).now > 10 * 1024 ** 2)
      assert.ok(residentBytes([pid]).peak >= residentBytes([pid]).now)
    } finally {
      for (const each of treeOf([pid]).reverse()) process.kill(each.pid, 'SIGKILL')
    }
  })

  test('of no process is empty', () => {
    assert.deepEqual(treeOf([]), [])
    assert.equal(cpuSeconds([]), 0)
  })
})
