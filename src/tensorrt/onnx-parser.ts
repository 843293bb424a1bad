/** OnnxParser: models in the ONNX format as networks. */
import { resolve } from 'node:path';

import { checkOptions, checkPath, checkText, invalid } from '../ground/arguments.js';
import { isBytes } from '../ground/other-realms.js';
import { NativeHandle } from './native-handle.js';
import { NetworkDefinition } from './network-definition.js';

export class OnnxParser extends NativeHandle {
  private readonly network: NetworkDefinition;

  private constructor(network: NetworkDefinition, number: number) {
    super(network.thread, number, 'an ONNX parser', network);
    this.network = network;
  }

  /**
   * createNvOnnxParser, into a network. What it has read stays in memory until the network is
   * closed: weights are the parser's.
   */
  static async create(network: NetworkDefinition): Promise<OnnxParser> {
    if (!(network instanceof NetworkDefinition))
      throw invalid('network', 'a NetworkDefinition', network);
    return new OnnxParser(network, await network.thread.call('createParser', network.handle));
  }

  /**
   * A model's bytes. IParser::parse
   *
   * @param options `path`: where the file lies, for weights in files beside it
   * @throws OnnxParserError with everything that the parser says, each with its node
   */
  async parse(
    model: Uint8Array,
    options: { readonly path?: string } = {},
  ): Promise<NetworkDefinition> {
    if (!isBytes(model)) throw invalid('model', "a Uint8Array of an ONNX file's bytes", model);
    checkOptions('options', options, ['path']);
    if (options.path !== undefined) checkPath('options.path', options.path);
    await this.thread.call(
      'parse',
      this.handle,
      model,
      options.path === undefined ? undefined : resolve(options.path),
    );
    return this.network;
  }

  /** A file, with whatever lies beside it. IParser::parseFromFile. @throws OnnxParserError */
  async parseFile(path: string): Promise<NetworkDefinition> {
    checkPath('path', path, 'the path of an ONNX file');
    await this.thread.call('parseFile', this.handle, resolve(path));
    return this.network;
  }

  /**
   * supportsOperator: whether the parser may know an operator; it may still refuse a node of it.
   */
  supportsOperator(name: string): Promise<boolean> {
    checkText('name', name);
    return this.thread.call('supportsOperator', this.handle, name);
  }
}
