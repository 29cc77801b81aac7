/** The contenders, in the order in which they are shown. */
import { bore } from './bore.ts'
import { chisel } from './chisel.ts'
import type { Contender } from './contender.ts'
import { direct } from './direct.ts'
import { frpHttp, frpTcp } from './frp.ts'
import { openssh } from './openssh.ts'
import { posternHttp, posternTcp } from './postern.ts'
import { rathole } from './rathole.ts'

export const tcpContenders: readonly Contender[] = [direct, openssh, posternTcp, frpTcp, chisel, rathole, bore]

/** OpenSSH does not know HTTP; it is here because the others are compared with it. */
export const httpContenders: readonly Contender[] = [direct, openssh, posternHttp, frpHttp]
