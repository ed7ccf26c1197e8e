// A growing array of plain values.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace torchdiag {

// Grows by realloc and never touches what is not filled yet: for large blocks the system then moves pages instead of
// bytes, and the unused half costs address space, not memory. std::vector copies on growth, which doubles the peak.
template <typename T>
class Array {
public:
    Array() = default;
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    ~Array() { std::free(data_); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return size_; }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }
    T& back() { return data_[size_ - 1]; }

    void push(T value) {
        if (size_ == capacity_) grow(size_ + 1);
        data_[size_++] = value;
    }
    void append(const T* values, std::size_t count) {
        if (count == 0) return;
        if (capacity_ - size_ < count) grow(size_ + count);
        std::memcpy(data_ + size_, values, count * sizeof(T));
        size_ += count;
    }
    void pop() { --size_; }
    void clear() { size_ = 0; }
    void reserve(std::size_t wanted) {
        if (wanted > capacity_) grow(wanted);
    }
    void swap(Array& other) {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }
    // For memory filled from outside: the caller writes below capacity, then says how far.
    void set_size(std::size_t size) { size_ = size; }

private:
    void grow(std::size_t wanted) {
        std::size_t capacity = capacity_ < 64 ? 128 : capacity_ * 2;
        if (capacity < wanted) capacity = wanted;
        if (capacity > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_alloc();
        void* moved = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
        if (moved == nullptr) throw std::bad_alloc();
        data_ = static_cast<T*>(moved);
        capacity_ = capacity;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace torchdiag
