/** Messages that SSH clients send, by the stage of the connection where they belong, and mutations of them. */
import {
  kexInit,
  keyLogin,
  message,
  messages,
  type SigningKey,
  sized,
} from '../../src/data-plane/ssh/testing/test-raw.ts'
import type { Dice } from './smuggling-shapes.ts'

/** What a message may refer to. */
export interface Around {
  readonly sessionId: Buffer
  /** A key that opens nothing, whatever it signs. */
  readonly key: SigningKey
  /** Channel numbers that the server has assigned. */
  readonly channels: readonly number[]
}

type Shape = (dice: Dice, around: Around) => Buffer

/** Messages that are valid at any time. */
const transport: readonly Shape[] = [
  () => message(messages.disconnect, 11, 'bye', ''),
  () => message(messages.ignore, 'x'.repeat(20)),
  () => message(3, 7),
  () => Buffer.concat([Buffer.of(4, 1), sized(Buffer.from('debug')), sized(Buffer.alloc(0))]),
  () => message(messages.serviceRequest, 'ssh-userauth'),
  () => message(messages.serviceRequest, 'ssh-connection'),
  () => message(6, 'ssh-userauth'),
  () => message(7, 2, 'server-sig-algs', 'ssh-ed25519', 'no-flow-control', 'p'),
  () => kexInit(),
  () => message(messages.newKeys),
  () => message(30, Buffer.alloc(32, 9)),
  () => message(31, Buffer.alloc(32, 9), Buffer.alloc(32), Buffer.alloc(64)),
]

const login: readonly Shape[] = [
  (dice) => message(messages.authRequest, 'v2', 'ssh-connection', dice.pick(['none', 'gssapi'])),
  () => message(messages.authRequest, 'v2', 'ssh-connection', 'password', false, 'hunter'),
  () => message(messages.authRequest, 'v2', 'ssh-connection', 'password', true, 'old', 'new'),
  () => message(messages.authRequest, 'v2', 'ssh-connection', 'keyboard-interactive', '', 'pam,otp'),
  () => message(messages.authRequest, 'v2', 'ssh-none', 'none'),
  (_dice, { sessionId, key }) => keyLogin({ sessionId }, { blob: key.blob, algorithm: 'ssh-ed25519' }),
  (_dice, { sessionId, key }) =>
    keyLogin({ sessionId }, { blob: key.blob, algorithm: 'ssh-ed25519', signer: (data) => key.sign(data) }),
  (dice, { sessionId }) =>
    keyLogin({ sessionId }, { blob: noise(dice, 60), algorithm: 'rsa-sha2-256', signer: () => noise(dice, 256) }),
  (dice, { sessionId }) =>
    keyLogin(
      { sessionId },
      {
        blob: noise(dice, 104),
        algorithm: 'ecdsa-sha2-nistp256',
        signer: () => message(0, noise(dice, 32)).subarray(1),
      },
    ),
  (dice) =>
    message(messages.authRequest, 'v2', 'ssh-connection', 'hostbased', 'ssh-ed25519', noise(dice, 51), 'h', 'u', 'sig'),
  () => message(messages.authFailure, 'publickey', false),
  () => message(messages.authSuccess),
  () => message(53, 'banner', ''),
  () => message(messages.keyOk, 'ssh-ed25519', 'blob'),
  () => message(61, 1, 'answer'),
]

const session: readonly Shape[] = [
  (dice) => message(messages.globalRequest, 'tcpip-forward', dice.chance(50), `n${dice.below(50)}.example.test`, 443),
  (dice) => message(messages.globalRequest, 'tcpip-forward', true, dice.pick(['', '*', 'localhost', '::']), 0),
  (dice) => message(messages.globalRequest, 'cancel-tcpip-forward', dice.chance(50), 'fuzz.example.test', 443),
  () => message(messages.globalRequest, 'streamlocal-forward@openssh.com', true, '/tmp/x'),
  () => message(messages.globalRequest, 'no-more-sessions@openssh.com', false),
  () => message(messages.globalRequest, 'keepalive@openssh.com', true),
  () => message(messages.globalRequest, 'hostkeys-prove-00@openssh.com', true, 'key'),
  () => message(messages.requestSuccess),
  () => message(messages.requestFailure),
  (dice) => message(messages.channelOpen, 'session', dice.below(5), 100_000, 32_000),
  () => message(messages.channelOpen, 'direct-tcpip', 3, 100_000, 32_000, 'a.test', 80, '192.0.2.1', 9),
  () => message(messages.channelOpen, 'direct-streamlocal@openssh.com', 3, 100_000, 32_000, '/tmp/x', '', 0),
  () => message(messages.channelOpen, 'forwarded-tcpip', 3, 100_000, 32_000, 'a.test', 80, '192.0.2.1', 9),
  () => message(messages.channelOpen, 'x11', 3, 100_000, 32_000, '192.0.2.1', 9),
  (dice, around) => message(messages.channelOpened, channel(dice, around), 7, 100_000, 32_000),
  (dice, around) => message(messages.channelRefused, channel(dice, around), 2, 'refused', ''),
  (dice, around) => message(messages.windowAdjust, channel(dice, around), dice.pick([0, 1, 100_000, 0xffffffff])),
  (dice, around) => message(messages.channelData, channel(dice, around), noise(dice, dice.below(300))),
  (dice, around) => message(95, channel(dice, around), 1, noise(dice, 20)),
  (dice, around) => message(messages.channelEnd, channel(dice, around)),
  (dice, around) => message(messages.channelClose, channel(dice, around)),
  (dice, around) => request(dice, around, 'pty-req', 'xterm', 80, 24, 0, 0, Buffer.of(1, 0, 0, 0, 3, 0)),
  (dice, around) =>
    request(dice, around, 'exec', dice.pick(['http', 'tcp', 'labeled --label a=b', 'http --help', "'"])),
  (dice, around) => request(dice, around, 'shell'),
  (dice, around) => request(dice, around, 'subsystem', 'sftp'),
  (dice, around) => request(dice, around, 'env', 'LANG', 'C'),
  (dice, around) => request(dice, around, 'window-change', 0xffffffff, 1, 0, 0),
  (dice, around) => request(dice, around, 'signal', 'INT'),
  (dice, around) => request(dice, around, 'x11-req', false, 'MIT-MAGIC-COOKIE-1', 'c', 0),
  (dice, around) => request(dice, around, 'auth-agent-req@openssh.com'),
  (dice, around) => request(dice, around, 'exit-status', 0),
  (dice, around) => request(dice, around, 'exit-signal', 'TERM', false, 'why', ''),
  (dice, around) => request(dice, around, 'xon-xoff', true),
  (dice, around) => message(messages.channelSuccess, channel(dice, around)),
  (dice, around) => message(100, channel(dice, around)),
]

/** A valid message, usually one that belongs to this stage, sometimes one that does not. */
export function messageShape(dice: Dice, around: Around, stage: 'login' | 'session'): Buffer {
  const usual = stage === 'login' ? login : session
  return dice.pick(dice.chance(75) ? usual : [...transport, ...login, ...session])(dice, around)
}

/** A copy with something wrong in it. */
export function mutate(dice: Dice, bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  const at = dice.below(copy.length)
  switch (dice.below(9)) {
    case 0:
      return copy.subarray(0, at)
    case 1:
      return Buffer.concat([copy.subarray(0, at), noise(dice, 1 + dice.below(64)), copy.subarray(at)])
    case 2:
      return Buffer.concat([copy.subarray(0, at), copy.subarray(Math.max(0, at - dice.below(200)))])
    case 3:
      return Buffer.concat([copy.subarray(0, at), copy.subarray(Math.min(copy.length, at + dice.below(200)))])
    case 4:
    case 5:
      if (copy.length >= 4) copy.set(extreme(dice), Math.min(at, copy.length - 4))
      return copy
    case 6:
      copy[0] = dice.below(256)
      return copy
    default:
      for (let i = 0; i <= dice.below(8); i++) copy[dice.below(copy.length)] = dice.below(256)
      return copy
  }
}

function request(dice: Dice, around: Around, kind: string, ...rest: Parameters<typeof message>[1][]): Buffer {
  return message(messages.channelRequest, channel(dice, around), kind, dice.chance(50), ...rest)
}

function channel(dice: Dice, { channels }: Around): number {
  return dice.chance(80) ? dice.pick(channels) : dice.pick([0, 1, 2, 3, 1000, 0x7fffffff, 0x80000000, 0xffffffff])
}

/** Lengths at which parsers often fail. */
function extreme(dice: Dice): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(dice.pick([0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 35_000]))
  return bytes
}

function noise(dice: Dice, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => dice.below(256)))
}
