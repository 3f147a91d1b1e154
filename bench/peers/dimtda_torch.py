"""DIMTDA in PyTorch, of transformers' Swin, BEiT and BERT modules and Q-Formers of plain torch: what scripts/make_dimtda_golden.py
takes exact values from, and what the benchmark compares with.

    model = Dimtda(DimtdaShape())                    # 209,729,433 parameters
    model = Dimtda(DimtdaShape.official())           # 242,547,097
    logits = model(page, layout, tokens)             # [B, 3, 896, 672], [B, 3, 224, 224], [B, T]: [B, T, 52000]
"""

import dataclasses

import torch
import torch.nn.functional as F
import transformers
from torch import nn


@dataclasses.dataclass
class DimtdaShape:
    page_size: tuple = (896, 672)
    page_patch: int = 4
    page_width: int = 128
    page_depths: tuple = (2, 2, 14, 2)
    page_heads: tuple = (4, 8, 16, 32)
    page_window: int = 7
    layout_size: int = 224
    layout_patch: int = 16
    layout_width: int = 768
    layout_layers: int = 12
    layout_heads: int = 12
    layout_ffn: int = 3072
    queries: int = 256
    query_width: int = 512
    query_heads: int = 8
    query_ffn: int = 1024
    width: int = 512
    layers: int = 3
    heads: int = 8
    ffn: int = 2048
    vocabulary: int = 52000
    context: int = 1536
    dropout: float = 0.1

    @classmethod
    def official(cls, **changed):
        return cls(**{**dict(queries=1024, query_width=1024, query_ffn=2048, layers=6), **changed})


class Attention(nn.Module):
    """Rows attend to `source`; norm(x + attention)."""

    def __init__(self, width, heads, source_width, dropout):
        super().__init__()
        self.heads = heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(source_width, width)
        self.value, self.out = nn.Linear(source_width, width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = dropout

    def forward(self, x, source):
        q, k, v = (one.unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for one in (self.query(x), self.key(source), self.value(source)))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0)
        y = self.out(y.transpose(1, 2).flatten(2))
        return self.norm(x + F.dropout(y, self.dropout, self.training))


class QFormer(nn.Module):
    """Learned queries that read an encoder's rows."""

    def __init__(self, shape, source_width):
        super().__init__()
        width = shape.query_width
        self.queries = nn.Parameter(0.02 * torch.randn(shape.queries, width))
        self.embedding_norm = nn.LayerNorm(width, eps=1e-12)
        self.attention = Attention(width, shape.query_heads, width, shape.dropout)
        self.cross = Attention(width, shape.query_heads, source_width, shape.dropout)
        self.up, self.down = nn.Linear(width, shape.query_ffn), nn.Linear(shape.query_ffn, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = shape.dropout

    def forward(self, source):
        x = F.dropout(self.embedding_norm(self.queries), self.dropout, self.training).expand(source.shape[0], -1, -1)
        x = self.cross(self.attention(x, x), source)
        y = self.down(F.gelu(self.up(x)))
        return self.norm(x + F.dropout(y, self.dropout, self.training))


class Dimtda(nn.Module):
    def __init__(self, shape, attention="sdpa"):
        super().__init__()
        self.shape = shape
        self.page = transformers.DonutSwinModel(transformers.DonutSwinConfig(
            image_size=list(shape.page_size), patch_size=shape.page_patch, embed_dim=shape.page_width,
            depths=list(shape.page_depths), num_heads=list(shape.page_heads), window_size=shape.page_window,
            drop_path_rate=0.0), add_pooling_layer=False)
        self.layout = transformers.BeitModel(transformers.BeitConfig(
            image_size=shape.layout_size, patch_size=shape.layout_patch, hidden_size=shape.layout_width,
            num_hidden_layers=shape.layout_layers, num_attention_heads=shape.layout_heads,
            intermediate_size=shape.layout_ffn, use_absolute_position_embeddings=True, use_mask_token=True,
            use_mean_pooling=True, layer_scale_init_value=0.1, drop_path_rate=0.0, attn_implementation=attention))
        page_width = shape.page_width * 2 ** (len(shape.page_depths) - 1)
        self.layout_projection = nn.Linear(shape.layout_width, page_width)
        self.page_queries, self.layout_queries = QFormer(shape, page_width), QFormer(shape, page_width)
        self.gate = nn.Linear(2 * shape.query_width, 1)
        self.fusion = nn.Linear(shape.query_width, page_width)
        self.bridge = nn.Linear(page_width, shape.width) if page_width != shape.width else nn.Identity()
        self.decoder = transformers.BertLMHeadModel(transformers.BertConfig(
            vocab_size=shape.vocabulary, hidden_size=shape.width, num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads, intermediate_size=shape.ffn, max_position_embeddings=shape.context,
            type_vocab_size=1, hidden_dropout_prob=shape.dropout, attention_probs_dropout_prob=shape.dropout,
            is_decoder=True, add_cross_attention=True, pad_token_id=1, attn_implementation=attention))

    def encode(self, page, layout):
        n = self.page_queries(self.page(page).last_hidden_state)
        d = self.layout_queries(self.layout_projection(self.layout(layout).last_hidden_state))
        alpha = torch.sigmoid(self.gate(torch.cat([n, d], dim=2)))
        return self.bridge(self.fusion(alpha * n + (1 - alpha) * d))

    def forward(self, page, layout, tokens):
        return self.decoder(input_ids=tokens, encoder_hidden_states=self.encode(page, layout), use_cache=False).logits


if __name__ == "__main__":
    with torch.device("meta"):
        for shape in (DimtdaShape(), DimtdaShape.official()):
            print(f"{sum(one.numel() for one in Dimtda(shape).parameters()):,} parameters")
