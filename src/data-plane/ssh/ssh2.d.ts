/** Types for the parts of ssh2 1.17.0 that the gateway uses, internals included: its limits can only be set there. */
declare module 'ssh2' {
  import type { KeyObject } from 'node:crypto'
  import type { EventEmitter } from 'node:events'
  import type { Socket } from 'node:net'
  import type { Duplex, Writable } from 'node:stream'

  namespace ssh2 {
    interface ServerConfig {
      readonly hostKeys: readonly string[]
      readonly ident: string
      readonly algorithms: Readonly<Record<string, readonly string[]>>
      readonly keepaliveInterval: number
      readonly keepaliveCountMax: number
    }

    class Server extends EventEmitter {
      constructor(config: ServerConfig)
      injectSocket(socket: Socket): void
    }

    interface Header {
      readonly versions: { readonly software: string }
    }

    interface Incoming extends EventEmitter {
      readonly _sock: Socket
      readonly _protocol: Protocol
      readonly _chanMgr: {
        add(opened: (error: Error | undefined, channel: Channel) => void): number
        get(number: number): Partial<Session> | undefined
      }
    }

    interface Protocol {
      /** Set during a key exchange; messages sent meanwhile are queued. */
      readonly _kexinit: Buffer | undefined
      readonly _cipher: CipherKeys & { encrypt: (packet: Buffer) => void }
      /** The payloads and the session id are used by tests only. */
      readonly _decipher: CipherKeys & { _onPayload: (payload: Buffer) => number | boolean | undefined }
      readonly _kex: { readonly sessionID: Buffer; readonly _remoteKexinit: Buffer; remoteExtInfoEnabled: boolean }
      /** The methods of logins that are waiting for an answer. */
      readonly _authsQueue: string[]
      _onHandshakeComplete: (negotiated: unknown) => void
      /** Where ciphers made later write their packets. */
      _onWrite: (bytes: Uint8Array) => void
      rekey(): void
      readonly _packetRW: {
        readonly write: {
          readonly allocStart: number
          readonly allocStartKEX: number
          alloc(bytes: number, isForced?: boolean): Buffer
          finalize(packet: Buffer, isForced?: boolean): Buffer
        }
      }
      ping: () => void
      readonly _handlers: {
        REQUEST_SUCCESS: () => void
        REQUEST_FAILURE: () => void
        CHANNEL_REQUEST: (
          protocol: unknown,
          channel: number,
          type: string,
          isReplyWanted: boolean,
          data: unknown,
        ) => void
        /** For tests. */
        EXT_INFO: (
          protocol: unknown,
          extensions: readonly { readonly name: string; readonly algs: readonly string[] }[],
        ) => void
      }
      forwardedTcpip(channel: number, window: number, packetBytes: number, ends: ForwardedEnds): void
      channelFailure(channel: number): void
      channelWindowAdjust(channel: number, bytes: number): void
    }

    /** The keys of the ciphers; each has only those that it needs. */
    interface CipherKeys {
      _encKey?: Buffer | KeyObject
      _decipherKey?: Buffer | KeyObject
      _macKey?: Buffer | KeyObject
    }

    interface ForwardedEnds {
      readonly boundAddr: string
      readonly boundPort: number
      readonly remoteAddr: string
      readonly remotePort: number
    }

    interface ChannelSide {
      readonly id: number
      readonly packetSize: number
      window: number
      readonly state: 'open' | 'eof' | 'closing' | 'closed'
    }

    interface Channel extends Duplex {
      readonly incoming: ChannelSide
      readonly outgoing: ChannelSide
      readonly stderr: Writable
      eof(): void
      close(): void
      exit(status: number): void
    }

    interface Session extends EventEmitter {
      readonly _chanInfo: { readonly outgoing: ChannelSide }
      /** Set while its command runs. */
      readonly _channel: Channel | undefined
      /** The client sends no more input. */
      readonly _ending: boolean
    }

    /** For tests: the client. */
    class Client extends EventEmitter {
      readonly _sock: Socket
      readonly _protocol: Protocol
      connect(config: {
        readonly host: string
        readonly port: number
        readonly username: string
        readonly privateKey?: string
        readonly password?: string
        readonly tryKeyboard?: boolean
        readonly keepaliveInterval?: number
        readonly algorithms?: Readonly<Record<string, readonly string[]>>
        readonly authHandler?: readonly unknown[] | (() => void)
        readonly localAddress?: string | undefined
        readonly readyTimeout?: number
      }): this
      forwardIn(address: string, port: number, done: (error: Error | undefined, port: number) => void): this
      unforwardIn(address: string, port: number, done: (error: Error | undefined) => void): this
      exec(
        command: string,
        options: { readonly pty?: boolean },
        done: (error: Error | undefined, channel: Channel & { readonly stderr: Duplex }) => void,
      ): this
      forwardOut(
        fromAddress: string,
        fromPort: number,
        toAddress: string,
        toPort: number,
        done: (error: Error | undefined) => void,
      ): this
      end(): this
    }

    interface AuthContext {
      readonly username: string
      readonly method: string
      accept(): void
      reject(methods: string[]): void
      /** A part is undefined when the message was cut short. */
      readonly key?: { algo: string | undefined; readonly data: Buffer | undefined }
      readonly hashAlgo?: string
      readonly signature?: Buffer
      readonly blob?: Buffer
    }
  }

  export = ssh2
}
