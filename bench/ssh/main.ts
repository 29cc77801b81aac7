/**
 * How fast is a tunnel through our gateway with plain `ssh` as the agent, compared with OpenSSH's own `-R`? Both use the
 * same client and cipher, so only the server differs.
 */
import { direct } from '../tunnel/contenders/direct.ts'
import { openssh } from '../tunnel/contenders/openssh.ts'
import { compareTunnels } from '../tunnel/main.ts'
import { type Row, rows } from '../tunnel/rows.ts'
import { posternSsh } from './gateway.ts'

/** What the ratio to OpenSSH must reach, by row. */
const bars: Readonly<Record<string, number>> = { up: 0.4, down: 0.33, 'tcp-requests': 1.5 }

const contenders = [direct, openssh, posternSsh]

export async function main(args: readonly string[]): Promise<void> {
  const own = rows.flatMap((row): Row[] => {
    const bar = bars[row.name]
    return bar === undefined ? [] : [{ ...row, contenders, bar }]
  })
  await compareTunnels({ name: 'ssh', rows: own, hasIdle: false }, args)
}
