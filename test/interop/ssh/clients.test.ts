/** Reports which clients are missing on this machine, so that skipped tests are not mistaken for passed ones. */
import { test } from 'node:test'
import { missing as noDropbear } from './dropbear.ts'
import { missing as noOpenssh } from './openssh.ts'

test('the SSH clients of this machine', (t) => {
  for (const missing of [noOpenssh, noDropbear]) {
    if (missing !== false) t.diagnostic(`${missing}: its tests are left out`)
  }
})
